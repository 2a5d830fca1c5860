/* SPDX-License-Identifier: ISC */
/* sluice report: a day in figures, from the log, and what waits now. */
#include "base/date.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/logs/log_when.h"
#include "cmd/logs/report_print.h"
#include "cmd/operator/client.h"
#include "cmd/options.h"

#include <stdio.h>
#include <stdlib.h>

static const char usage[] =
	"usage: sluice report [--day DAY | --since T --until T] [--top N] [--log FILE|-] [--json]\n"
	"What the relay has done in a day: totals, the busiest senders, logins and destinations,\n"
	"why mail was put off or failed, what was refused; and what waits now. It needs no "
	"running\n"
	"relay. As a line of cron:  sluice report --day yesterday | mail -s \"mail\" postmaster\n"
	"  --day DAY   today (if nothing is said: up to now), yesterday, or 2026-11-22\n"
	"  --since T   from then on: as in sluice trace\n"
	"  --until T   up to then; a day is meant with its end\n"
	"  --top N     rows of each table; 10 if not given\n"
	"  --log FILE  another log than that of the configuration; -: standard input\n"
	"  --json      one object\n";

enum {
	OPTION_DAY = OPTION_OWN,
	OPTION_SINCE,
	OPTION_UNTIL,
	OPTION_TOP,
	OPTION_LOG,
	TOP_MOST = 100000
};

static const struct option longs[] = {
	{"day", required_argument, NULL, OPTION_DAY},
	{"since", required_argument, NULL, OPTION_SINCE},
	{"until", required_argument, NULL, OPTION_UNTIL},
	{"top", required_argument, NULL, OPTION_TOP},
	{"log", required_argument, NULL, OPTION_LOG},
	{"json", no_argument, NULL, OPTION_JSON},
	OPTIONS_COMMON,
};

struct wanted {
	struct report_frame frame;
	const char *log;
	bool json, day, bounds;
};

static void parse_time(struct options *o, struct wanted *w, int option, int64_t now_ms)
{
	struct log_span *span = &w->frame.span;
	bool good;
	if (option == OPTION_DAY)
		good = log_when_day(optarg, now_ms, &span->from_ms, &span->to_ms);
	else
		good = log_when(optarg, now_ms, option == OPTION_UNTIL,
				option == OPTION_UNTIL ? &span->to_ms : &span->from_ms);
	*(option == OPTION_DAY ? &w->day : &w->bounds) = true;
	if (!good)
		options_wrong(o, "%s is no %s", optarg, option == OPTION_DAY ? "day" : "time");
}

static void parse_options(struct options *o, struct wanted *w, int argc, char **argv)
{
	int option;
	int64_t now_ms = date_ms(), end_ms;
	log_when_day("today", now_ms, &w->frame.span.from_ms, &end_ms);
	w->frame.span.to_ms = now_ms;
	while ((option = options_next(o, argc, argv)) != -1) {
		if (option == OPTION_JSON)
			w->json = true;
		else if (option == OPTION_LOG)
			w->log = optarg;
		else if (option == OPTION_TOP)
			w->frame.top = (int)options_number(o, "--top", optarg, 1, TOP_MOST);
		else
			parse_time(o, w, option, now_ms);
	}
	if (optind < argc)
		options_wrong(o, "report takes no argument %s", argv[optind]);
	if (w->day && w->bounds)
		options_wrong(o, "--day says since when and until when");
	if (w->frame.span.from_ms >= w->frame.span.to_ms)
		options_wrong(o, "there is no time between the two");
}

static bool ask_shape(struct conf *conf, const struct wanted *w, struct buf *to)
{
	char shape[] = "shape", json[] = "--json", incoming[] = "incoming", active[] = "active",
	     deferred[] = "deferred", hold[] = "hold";
	char *top = mem_printf("-n%d", w->frame.top + 1); /* with the total */
	char *words[] = {shape, top, incoming, active, deferred, hold, json};
	int status = client_ask_queue_into(conf, w->json ? 7 : 6, words, to);
	free(top);
	return status == STATUS_DONE;
}

static bool print_report(struct conf *conf, struct wanted *w)
{
	struct log_files files = {0};
	struct report_count count = {.made = false};
	struct buf waiting = {0}, out = {0};
	bool found = log_pass_files(&files, conf, w->log);
	bool good = found && log_pass(&files, w->frame.span, NULL, report_count_line, &count);
	if (found) {
		report_count_sort(&count);
		w->frame.hostname = conf->own_name;
		w->frame.waiting = ask_shape(conf, w, &waiting) ? buf_cstr(&waiting) : NULL;
		(w->json ? report_print_json : report_print_text)(&out, &count, &w->frame);
		fputs(buf_cstr(&out), stdout);
	}
	buf_fini(&out);
	buf_fini(&waiting);
	report_count_fini(&count);
	log_files_fini(&files);
	return good && fflush(stdout) == 0;
}

int cmd_report(int argc, char **argv)
{
	struct options o = {.usage = usage, .shorts = "c:", .longs = longs};
	struct wanted w = {.frame = {.top = 10}};
	parse_options(&o, &w, argc, argv);
	struct conf *conf = options_conf_to_ask(&o);
	if (!conf)
		return STATUS_REFUSED;
	bool good = print_report(conf, &w);
	conf_unref(conf);
	return good ? STATUS_DONE : STATUS_REFUSED;
}
