/* SPDX-License-Identifier: ISC */
#include "cmd/text/milter_print.h"

#include "base/condition.h"
#include "base/date.h"
#include "base/internet_time.h"
#include "base/metrics.h"
#include "cmd/text/json_put.h"
#include "cmd/text/moment.h"

#include <inttypes.h>
#include <string.h>

static const char *state_word(const struct milter_row *r)
{
	if (r->why)
		return "away";
	if (!conf_milter_passed(r->conf, r->filter))
		return "unused";
	return r->health.away ? "failing" : "ready";
}

/* How often it was so; answer NULL: all. */
static int64_t sum_cells(enum metric_family f, const struct milter_row *r, const char *answer)
{
	int64_t n = 0;
	for (const struct metric_cell *c = NULL; (c = metric_cell_next(f, c));)
		if (strcmp(metric_cell_label(c, 0), r->filter->title) == 0 &&
		    (!answer || strcmp(metric_cell_label(c, 1), answer) == 0))
			n += metric_cell_value(c);
	return n;
}

static int64_t count_answers(const struct milter_row *r, const char *answer)
{
	return sum_cells(FAMILY_milter_answers, r, answer);
}

static int64_t mean_us(const struct milter_row *r)
{
	return r->health.answers > 0 ? r->health.answer_us / r->health.answers : 0;
}

static void put_time(struct buf *to, int64_t us)
{
	if (us < 1000000)
		buf_printf(to, "%.3g ms", (double)us / 1000);
	else
		moment_put_span(to, us / 1000);
}

static void put_cell(struct buf *to, const struct milter_row *r, int64_t us)
{
	struct buf text = {0};
	if (r->health.answers > 0)
		put_time(&text, us);
	buf_printf(to, " %8s", buf_len(&text) > 0 ? buf_cstr(&text) : "-");
	buf_fini(&text);
}

void milter_print_list(struct buf *to, const struct milter_row *row, int n)
{
	int width = 6;
	for (int i = 0; i < n; i++)
		if ((int)strlen(row[i].filter->title) > width)
			width = (int)strlen(row[i].filter->title);
	buf_printf(to, "%-*s %-7s %8s %7s %8s %7s %7s %8s %8s  %-10s  %s\n", width, "FILTER",
		   "STATE", "ANSWERS", "REJECT", "TEMPFAIL", "DISCARD", "FAILED", "MEAN", "LONGEST",
		   "WHILE AWAY", "ADDRESS");
	for (int i = 0; i < n; i++) {
		const struct milter_row *r = &row[i];
		buf_printf(to,
			   "%-*s %-7s %8" PRId64 " %7" PRId64 " %8" PRId64 " %7" PRId64
			   " %7" PRId64,
			   width, r->filter->title, state_word(r), count_answers(r, NULL),
			   count_answers(r, "reject"), count_answers(r, "tempfail"),
			   count_answers(r, "discard"), sum_cells(FAMILY_milter_failures, r, NULL));
		put_cell(to, r, mean_us(r));
		put_cell(to, r, r->health.longest_us);
		buf_printf(to, "  %-10s  %s\n", conf_milter_action(r->filter->default_action),
			   r->filter->address);
	}
}

static void put_since(struct buf *to, const struct milter_row *r, int64_t now_ms)
{
	if (r->health.since_ms == 0)
		return;
	buf_printf(to, "  %s since ", r->health.away ? "away" : "back");
	moment_put(to, r->health.since_ms - date_ahead_ms(), false); /* it is a date already */
	buf_puts(to, ", for ");
	moment_put_span(to, now_ms - r->health.since_ms);
	buf_puts(to, "\n");
}

static void put_answers(struct buf *to, const struct milter_row *r)
{
	int shown = 0;
	buf_printf(to, "  answers: %" PRId64, count_answers(r, NULL));
	for (const struct metric_cell *c = NULL; (c = metric_cell_next(FAMILY_milter_answers, c));)
		if (strcmp(metric_cell_label(c, 0), r->filter->title) == 0)
			buf_printf(to, "%s%" PRId64 " %s", shown++ ? ", " : ": ",
				   metric_cell_value(c), metric_cell_label(c, 1));
	if (r->health.answers > 0) {
		buf_puts(to, "\n  time of an answer: ");
		put_time(to, mean_us(r));
		buf_puts(to, " on average, at most ");
		put_time(to, r->health.longest_us);
	}
	buf_printf(to, "\n  failures: %" PRId64, sum_cells(FAMILY_milter_failures, r, NULL));
	if (r->health.why)
		buf_printf(to, "; the last: %s", r->health.why);
	buf_puts(to, "\n");
}

static void put_whose(struct buf *to, const struct milter_row *r)
{
	int n = 0;
	buf_puts(to, "  mail that passes it: ");
	for (int i = 0; i < r->conf->nlistener; i++)
		for (int k = 0; k < r->conf->listener[i].npasses; k++)
			if (r->conf->listener[i].passes[k] == r->filter)
				buf_printf(to, "%slistener \"%s\"", n++ ? ", " : "",
					   r->conf->listener[i].title);
	if (r->filter->local)
		buf_printf(to, "%sof sendmail", n++ ? ", " : "");
	buf_puts(to, n > 0 ? "\n" : "none: no listener's milters name it\n");
}

void milter_print_full(struct buf *to, const struct milter_row *r, int64_t now_ms)
{
	buf_printf(to, "%s at %s: %s\n", r->filter->title, r->filter->address, state_word(r));
	buf_puts(to, "  tried now: ");
	if (r->why)
		buf_puts(to, r->why);
	else
		buf_puts(to, "it answered after ");
	if (!r->why)
		put_time(to, r->took_us);
	buf_puts(to, "\n");
	put_since(to, r, now_ms);
	buf_printf(to, "  while it is away: %s (default_action = \"%s\")\n",
		   condition_effect(milter_health_condition(r->filter)),
		   conf_milter_action(r->filter->default_action));
	put_answers(to, r);
	put_whose(to, r);
}

void milter_print_json(struct buf *to, const struct milter_row *r)
{
	char since[INTERNET_TIME_TEXT];
	buf_puts(to, "{");
	json_put_text(to, "milter", r->filter->title);
	json_put_text(to, "address", r->filter->address);
	json_put_text(to, "state", state_word(r));
	json_put_text(to, "since",
		      r->health.since_ms > 0 ? internet_time_text(r->health.since_ms, since)
					     : NULL);
	json_put_text(to, "reason", r->why);
	json_put_text(to, "last_failure", r->health.why);
	json_put_text(to, "default_action", conf_milter_action(r->filter->default_action));
	buf_puts(to, "\"answers\":{");
	for (const struct metric_cell *c = NULL; (c = metric_cell_next(FAMILY_milter_answers, c));)
		if (strcmp(metric_cell_label(c, 0), r->filter->title) == 0)
			json_put_number(to, metric_cell_label(c, 1), metric_cell_value(c));
	json_put_end(to, '}');
	json_put_number(to, "failures", sum_cells(FAMILY_milter_failures, r, NULL));
	json_put_number(to, "mean_us", mean_us(r));
	json_put_number(to, "longest_us", r->health.longest_us);
	json_put_number(to, "tried_us", r->took_us);
	json_put_line(to);
}
