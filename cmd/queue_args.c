/* SPDX-License-Identifier: ISC */
#include "cmd/queue_args.h"

#include "base/conf_units.h"
#include "base/mailaddr.h"
#include "cmd/options.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
	OPTION_QUEUE = OPTION_OWN,
	OPTION_FROM,
	OPTION_TO,
	OPTION_DOMAIN,
	OPTION_OLDER,
	OPTION_REASON,
	OPTION_ALL,
	OPTION_ENVELOPE,
	OPTION_HEADERS,
	OPTION_BODY,
	OPTION_REPAIR,
};

static const struct option longs[] = {
	{"queue", required_argument, NULL, OPTION_QUEUE},
	{"from", required_argument, NULL, OPTION_FROM},
	{"to", required_argument, NULL, OPTION_TO},
	{"domain", required_argument, NULL, OPTION_DOMAIN},
	{"older", required_argument, NULL, OPTION_OLDER},
	{"reason", required_argument, NULL, OPTION_REASON},
	{"all", no_argument, NULL, OPTION_ALL},
	{"envelope", no_argument, NULL, OPTION_ENVELOPE},
	{"headers", no_argument, NULL, OPTION_HEADERS},
	{"body", no_argument, NULL, OPTION_BODY},
	{"repair", no_argument, NULL, OPTION_REPAIR},
	{"json", no_argument, NULL, OPTION_JSON},
	OPTIONS_COMMON,
};

static bool parse_queue(struct queue_filter *f, const char *text, struct buf *error)
{
	for (int q = SPOOL_INCOMING; q <= SPOOL_HOLD; q++)
		if (strcmp(text, spool_queue_name((enum spool_queue)q)) == 0)
			f->queue = q;
	if (f->queue < 0)
		buf_printf(error, "--queue is one of incoming, active, deferred, hold; not %s",
			   text);
	return f->queue >= 0;
}

static bool parse_older(struct queue_filter *f, const char *text, struct buf *error)
{
	struct buf why;
	buf_init(&why);
	bool ok = conf_amount_parse(CONF_duration, text, &f->older_ms, &why) && f->older_ms >= 0;
	if (!ok)
		buf_printf(error, "--older %s: %s", text,
			   buf_len(&why) ? buf_cstr(&why) : "is no time");
	buf_fini(&why);
	return ok;
}

static bool parse_filter(struct queue_filter *f, int option, struct buf *error)
{
	f->any = true;
	switch (option) {
	case OPTION_QUEUE:
		return parse_queue(f, optarg, error);
	case OPTION_FROM:
		f->from = strcmp(optarg, "<>") == 0 ? "" : optarg;
		return true;
	case OPTION_TO:
		f->to = optarg;
		return true;
	case OPTION_DOMAIN:
		f->domain = optarg[0] == '@' ? optarg + 1 : optarg;
		return true;
	case OPTION_OLDER:
		return parse_older(f, optarg, error);
	default:
		f->reason = optarg;
		return true;
	}
}

static bool parse_option(struct queue_args *a, int option, struct buf *error)
{
	switch (option) {
	case 'c':
		a->conf_file = optarg;
		return true;
	case OPTION_HELP:
		a->help = true;
		return true;
	case OPTION_JSON:
		a->json = true;
		return true;
	case OPTION_ALL:
		a->all = true;
		return true;
	case OPTION_ENVELOPE:
		a->envelope = true;
		return true;
	case OPTION_HEADERS:
		a->header = true;
		return true;
	case OPTION_BODY:
		a->body = true;
		return true;
	case OPTION_REPAIR:
		a->repair = true;
		return true;
	default:
		return parse_filter(&a->filter, option, error);
	}
}

const struct queue_verb_row queue_verbs[QUEUE_VERBS] = {
	[QUEUE_LIST] = {"list", SPOOL_LIST, NULL},
	[QUEUE_SHOW] = {"show", SPOOL_SHOW, NULL},
	[QUEUE_CHECK] = {"check", SPOOL_LIST, NULL},
	[QUEUE_FLUSH] = {"flush", SPOOL_FLUSH, "flushed"},
	[QUEUE_DELETE] = {"delete", SPOOL_DELETE, "deleted"},
	[QUEUE_HOLD] = {"hold", SPOOL_SUSPEND, "held"},
	[QUEUE_RELEASE] = {"release", SPOOL_RESUME, "released"},
	[QUEUE_REQUEUE] = {"requeue", SPOOL_REQUEUE, "requeued"},
	[QUEUE_BOUNCE] = {"bounce", SPOOL_BOUNCE, "bounced"},
};

static bool parse_verb(struct queue_args *a, const char *word, struct buf *error)
{
	for (int i = 0; i < QUEUE_VERBS; i++) {
		if (word && strcmp(word, queue_verbs[i].name) == 0) {
			a->verb = (enum queue_verb)i;
			return true;
		}
	}
	if (word)
		buf_printf(error,
			   "queue %s: unknown; it is one of list, show, flush, delete, hold, "
			   "release, requeue, bounce, check",
			   word);
	else
		buf_puts(error, "queue: say what to do: list, show, flush, delete, hold, release, "
				"requeue, bounce or check");
	return false;
}

/* What the options and ids of one verb must have, or must not. */
static bool check(const struct queue_args *a, struct buf *error)
{
	bool change = a->verb >= QUEUE_FLUSH;
	bool parts = a->envelope || a->header || a->body;
	const char *wrong = NULL;
	bool chosen = a->nid > 0 || a->filter.any || a->all;
	if (a->verb == QUEUE_CHECK && chosen)
		wrong = "check reads the whole queue: no ids, no filter";
	else if (a->verb != QUEUE_CHECK && a->repair)
		wrong = "--repair belongs to check";
	else if (a->verb == QUEUE_SHOW && (a->nid != 1 || a->filter.any || a->all))
		wrong = "show takes one id";
	else if (a->verb != QUEUE_SHOW && parts)
		wrong = "--envelope, --headers and --body belong to show";
	else if (a->verb == QUEUE_SHOW && a->json && parts)
		wrong = "--json shows the envelope and nothing else";
	else if (change && a->json)
		wrong = "--json belongs to list, show and check";
	else if ((a->nid > 0) + a->filter.any + a->all > 1)
		wrong = "give ids, or a filter, or --all";
	else if (change && a->nid == 0 && !a->filter.any && !a->all)
		wrong = "say which messages: ids, a filter, or --all";
	if (wrong)
		buf_puts(error, wrong);
	return !wrong;
}

bool queue_args_parse(struct queue_args *a, int argc, char **argv, struct buf *error)
{
	*a = (struct queue_args){.filter = {.queue = -1, .older_ms = -1}};
	int option;
	optind = 0;
	opterr = 0;
	bool ok = true;
	while (ok && (option = getopt_long(argc, argv, ":c:", longs, NULL)) != -1) {
		if (option == ':' || option == '?') {
			buf_printf(error, "%s: %s", argv[optind - 1],
				   option == ':' ? "wants a value"
						 : "unknown option, or wrong here");
			ok = false;
		} else {
			ok = parse_option(a, option, error);
		}
	}
	opterr = 1;
	if (a->help)
		return true;
	ok = ok && parse_verb(a, argv[optind], error);
	a->nid = ok ? argc - optind - 1 : 0;
	a->id = argv + optind + 1;
	ok = ok && check(a, error);
	if (!a->envelope && !a->header && !a->body)
		a->envelope = a->header = a->body = true;
	return ok;
}

static bool reason_matches(const struct recipient *r, const char *reason)
{
	if (!r->last)
		return false;
	if (strcasestr(r->last->text, reason) || strcasestr(r->last->host, reason))
		return true;
	char codes[32];
	snprintf(codes, sizeof codes, "%d %s", r->last->code, r->last->dsn);
	return strcasestr(codes, reason);
}

static bool recipient_matches(const struct queue_filter *f, const struct recipient *r)
{
	return (!f->to || strcasecmp(r->address, f->to) == 0) &&
	       (!f->domain || strcasecmp(mailaddr_domain(r->address), f->domain) == 0) &&
	       (!f->reason || reason_matches(r, f->reason));
}

bool queue_filter_match(const struct queue_filter *f, const struct spool_row *row, int64_t now_ms)
{
	const struct envelope *e = row->envelope;
	if ((f->queue >= 0 && (int)row->queue != f->queue) ||
	    (f->from && strcasecmp(e->sender, f->from) != 0) ||
	    (f->older_ms >= 0 && now_ms - e->arrived_ms < f->older_ms))
		return false;
	if (!f->to && !f->domain && !f->reason)
		return true;
	for (uint32_t i = 0; i < e->nrcpt; i++)
		if (!e->rcpt[i].done && recipient_matches(f, &e->rcpt[i]))
			return true;
	return false;
}
