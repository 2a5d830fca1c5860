/* SPDX-License-Identifier: ISC */
#include "cmd/text/shape_args.h"

#include "cmd/options.h"
#include "spool/shape.h"
#include "spool/spool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	OPTION_COLOR = OPTION_OWN,
	OPTION_FROM,
	OPTION_FLOW,
	OPTION_REDRAW,
	WIDTH_MIN = 80,
	WIDTH_MAX = 10000
};
#define MINUTES_MAX 1e6

static const struct option longs[] = {
	{"senders", no_argument, NULL, 's'},
	{"parents", no_argument, NULL, 'p'},
	{"min-subdomains", required_argument, NULL, 'm'},
	{"linear", no_argument, NULL, 'l'},
	{"buckets", required_argument, NULL, 'b'},
	{"time", required_argument, NULL, 't'},
	{"width", required_argument, NULL, 'w'},
	{"top", required_argument, NULL, 'n'},
	{"batch", required_argument, NULL, 'N'},
	{"from", required_argument, NULL, OPTION_FROM},
	{"flow", required_argument, NULL, OPTION_FLOW},
	{"redraw", no_argument, NULL, OPTION_REDRAW},
	{"json", no_argument, NULL, OPTION_JSON},
	{"color", no_argument, NULL, OPTION_COLOR},
	OPTIONS_COMMON,
};

static bool parse_number(const char *name, int low, int high, int *to, struct buf *error)
{
	char *end;
	errno = 0;
	long n = strtol(optarg, &end, 10);
	if (errno != 0 || end == optarg || *end || n < low || n > high) {
		buf_printf(error, "%s %s: a number from %d to %d is wanted", name, optarg, low,
			   high);
		return false;
	}
	*to = (int)n;
	return true;
}

/* A part of a minute is a time too. */
static bool parse_minutes(double *to, struct buf *error)
{
	char *end;
	double n = strtod(optarg, &end);
	if (end == optarg || *end || !(n * 60000 >= 1 && n <= MINUTES_MAX)) {
		buf_printf(error, "-t %s: minutes are wanted, more than 0", optarg);
		return false;
	}
	*to = n;
	return true;
}

static bool add_name(const char *of[SHAPE_NAMES_MAX], int *n, const char *option, struct buf *error)
{
	if (*n == SHAPE_NAMES_MAX) {
		buf_printf(error, "%s %s: more than %d of these", option, optarg, SHAPE_NAMES_MAX);
		return false;
	}
	of[(*n)++] = optarg;
	return true;
}

static bool parse_option(struct shape_args *a, int option, struct buf *error)
{
	switch (option) {
	case 's':
		return a->senders = true;
	case 'p':
		return a->parents = true;
	case 'l':
		return a->linear = true;
	case 'm':
		return parse_number("-m", 1, 1 << 30, &a->subdomains_min, error);
	case 'b':
		return parse_number("-b", 1, SHAPE_BUCKETS_MAX, &a->buckets, error);
	case 't':
		return parse_minutes(&a->minutes, error);
	case 'w':
		return parse_number("-w", WIDTH_MIN, WIDTH_MAX, &a->width, error);
	case 'n':
		a->top_set = true;
		return parse_number("-n", 0, 1 << 30, &a->top, error);
	case 'N':
		return parse_number("-N", 1, 1 << 30, &a->batch, error);
	case OPTION_FROM:
		return add_name(a->from, &a->nfrom, "--from", error);
	case OPTION_FLOW:
		return add_name(a->flow, &a->nflow, "--flow", error);
	case OPTION_REDRAW:
		return a->redraw = true;
	case 'c':
		a->conf_file = optarg;
		return true;
	case OPTION_JSON:
		return a->json = true;
	case OPTION_COLOR:
		return a->color = true;
	default:
		return a->help = true;
	}
}

static bool parse_queue(struct shape_args *a, const char *name, struct buf *error)
{
	unsigned queue = spool_queue_bit(name, strlen(name));
	a->queues |= queue;
	if (queue)
		return true;
	if (strcmp(name, "maildrop") == 0)
		return a->maildrop = true;
	buf_printf(error, "a queue is one of maildrop, incoming, active, deferred, hold; not %s",
		   name);
	return false;
}

bool shape_args_parse(struct shape_args *a, int argc, char **argv, struct buf *error)
{
	*a = (struct shape_args){
		.subdomains_min = 5, .buckets = 10, .minutes = SHAPE_MINUTES, .width = WIDTH_MIN};
	int option;
	bool ok = true;
	optind = 0;
	opterr = 0;
	while (ok && (option = getopt_long(argc, argv, ":spm:lb:t:w:n:N:c:h", longs, NULL)) != -1) {
		if (option == ':' || option == '?') {
			options_fault(error, option, argv);
			ok = false;
		} else {
			ok = parse_option(a, option, error);
		}
	}
	opterr = 1;
	for (int i = optind; ok && !a->help && i < argc; i++)
		ok = parse_queue(a, argv[i], error);
	if (!a->queues && !a->maildrop)
		a->queues = 1u << SPOOL_INCOMING | 1u << SPOOL_ACTIVE;
	return ok;
}
