/* SPDX-License-Identifier: ISC */
#include "cmd/operator/top_screen.h"

#include "base/number.h"
#include "base/utf8.h"
#include "cmd/cmd.h"
#include "cmd/text/moment.h"
#include "cmd/text/stats_print.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	HEAD_LINES = 6,
	FOOT_LINES = 1,
	CONDITIONS_MOST = 5,
	NAME_LEAST = 12,
	NAME_MOST = 40,
	STATE = 14
};

static const char *const titles[TOP_ORDERS] = {"worst", "waiting", "deferred", "rate", "name"};

/* One line, cut at the right margin; a character is never cut through. */
static void put_line(struct buf *to, const char *line, int columns)
{
	size_t len = 0;
	int shown = 0;
	while (line[len] && line[len] != '\n' && shown < columns) {
		len++;
		while ((line[len] & 0xc0) == 0x80)
			len++;
		shown++;
	}
	utf8_put_most(to, line, len);
	buf_puts(to, "\n");
}

/* The next line of a condition, or NULL. */
static const char *condition_line(const char *text)
{
	const char *found = strstr(text, "\n" STATS_CONDITION);
	return found ? found + 1 : NULL;
}

static int shown_conditions(const struct top_look *l)
{
	int n = 0;
	const char *line = buf_len(&l->stats) > 0 ? buf_cstr((struct buf *)&l->stats) : "";
	while (n < CONDITIONS_MOST && (line = condition_line(line)))
		n++;
	return n;
}

static int most_sites(const struct top_screen *s, const struct top_look *l)
{
	int room = s->rows - HEAD_LINES - FOOT_LINES - shown_conditions(l);
	return room > TOP_SITES ? TOP_SITES : room > 0 ? room : 0;
}

int top_screen_sites(const struct top_screen *s, const struct top_look *l)
{
	int most = most_sites(s, l);
	return l->nsite < most ? l->nsite : most;
}

static enum top_order sorting; /* qsort() passes no pointer of ours */

static int compare_descending(double a, double b)
{
	return (a < b) - (a > b);
}

static int by_order(const void *x, const void *y)
{
	const struct top_site *a = x, *b = y;
	int way = 0;
	if (sorting == TOP_WAITING)
		way = compare_descending((double)a->waiting, (double)b->waiting);
	else if (sorting == TOP_DEFERRED)
		way = compare_descending((double)a->deferred, (double)b->deferred);
	else if (sorting == TOP_RATE)
		way = compare_descending(a->rate, b->rate);
	if (way == 0)
		way = strcmp(a->name, b->name);
	return way ? way : strcmp(a->key, b->key);
}

void top_screen_sort(const struct top_screen *s, struct top_look *l)
{
	sorting = s->order;
	if (s->order != TOP_WORST && l->nsite > 0)
		qsort(l->site, (size_t)l->nsite, sizeof *l->site, by_order);
}

/* --- above the table */

static void put_bytes(struct buf *to, double n)
{
	static const char *const units[] = {"bytes", "KB", "MB", "GB", "TB"};
	int unit = 0;
	for (; n >= 1000 && unit < 4; unit++)
		n /= 1024;
	buf_printf(to, n < 10 && unit > 0 ? "%.1f %s" : "%.0f %s", n, units[unit]);
}

static void put_program(const struct top_screen *s, const struct top_look *l, int64_t now_ms,
			struct buf *line)
{
	char text[16];
	struct tm tm;
	time_t now = (time_t)(now_ms / 1000);
	bool takes = strstr(buf_cstr((struct buf *)&l->stats), "\naccepting yes\n");
	strftime(text, sizeof text, "%H:%M:%S", localtime_r(&now, &tm));
	buf_puts(line, "sluice " SLUICE_VERSION "   up ");
	moment_put_span(line, (int64_t)top_look_value(l, "uptime_seconds") * 1000);
	buf_printf(line, "   %s   %s%s", takes ? "takes mail" : "REFUSES NEW MAIL", text,
		   s->paused ? "   paused" : "");
}

static void put_rates(const struct top_look *l, const struct top_look *before, struct buf *line)
{
	static const char *const rates[][2] = {
		{"in", "messages_received_total"},
		{"sent", "deliveries_total{result=\"sent\""},
		{"deferred", "deliveries_total{result=\"deferred\""},
		{"bounced", "deliveries_total{result=\"bounced\""},
		{"rejected", "rejects_total"},
	};
	char rate[NUMBER_RATE_MAX];
	for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
		buf_printf(line, "%s%s %s/s", i ? "   " : "", rates[i][0],
			   number_rate(rate, top_look_rate(l, before, rates[i][1])));
	buf_printf(line, "   connections %.0f in, %.0f out",
		   top_look_sum(l, "connections{side=\"server\""),
		   top_look_sum(l, "connections{side=\"client\""));
}

static void put_queues(const struct top_look *l, struct buf *line)
{
	static const char *const queues[] = {"incoming", "active", "deferred", "hold"};
	for (size_t i = 0; i < sizeof queues / sizeof *queues; i++) {
		char name[60];
		snprintf(name, sizeof name, "queue_messages{queue=\"%s\"}", queues[i]);
		buf_printf(line, "%s%s %.0f", i ? "   " : "", queues[i], top_look_value(l, name));
	}
	buf_puts(line, "   on disk ");
	put_bytes(line, top_look_value(l, "queue_bytes"));
	buf_printf(line, "   destinations %.0f, %.0f down", top_look_value(l, "destinations"),
		   top_look_value(l, "destinations_dead"));
}

/* Where a message spends its time, on average since the look before, the longest first. */
static void put_slow(const struct top_look *l, const struct top_look *before, struct buf *line)
{
	struct stage {
		const char *name, *histogram, *labels;
		double mean;
	} stage[] = {
		{"waiting for the scheduler", "delivery_seconds",
		 "{stage=\"before_queue_manager\"}", 0},
		{"in queue", "delivery_seconds", "{stage=\"in_queue\"}", 0},
		{"connecting", "delivery_seconds", "{stage=\"connection_setup\"}", 0},
		{"transmission", "delivery_seconds", "{stage=\"transmission\"}", 0},
		{"commit to disk", "commit_seconds", "", 0},
	};
	enum { STAGES = sizeof stage / sizeof *stage };
	int shown = 0;
	for (int i = 0; i < STAGES; i++)
		stage[i].mean = top_look_mean(l, before, stage[i].histogram, stage[i].labels);
	buf_puts(line, "what takes time: ");
	for (int n = 0; n < STAGES; n++) {
		struct stage *most = &stage[0];
		for (int i = 1; i < STAGES; i++)
			if (stage[i].mean > most->mean)
				most = &stage[i];
		if (most->mean < 0)
			break;
		buf_printf(line, "%s%s ", shown++ ? ", " : "", most->name);
		if (most->mean < 1)
			buf_printf(line, "%.3g ms", most->mean * 1000);
		else
			moment_put_span(line, (int64_t)(most->mean * 1000));
		most->mean = -1;
	}
	if (shown == 0)
		buf_puts(line, "nothing since the last look");
}

/* Conditions that stop mail come first; stats has all of them. */
static void print_conditions(const struct top_screen *s, const struct top_look *l, struct buf *to)
{
	const char *line = buf_len(&l->stats) > 0 ? buf_cstr((struct buf *)&l->stats) : "";
	for (int n = 0; n < CONDITIONS_MOST && (line = condition_line(line)); n++)
		put_line(to, line + strlen(STATS_CONDITION), s->columns);
}

/* --- the table */

static int name_width(const struct top_screen *s, const struct top_look *l, int n)
{
	int width = NAME_LEAST, most = s->columns / 3 < NAME_MOST ? s->columns / 3 : NAME_MOST;
	for (int i = 0; i < n; i++)
		if ((int)strlen(l->site[i].name) > width)
			width = (int)strlen(l->site[i].name);
	return width > most && most > NAME_LEAST ? most : width;
}

static void put_site(const struct top_site *site, bool chosen, int width, struct buf *line)
{
	struct buf state = {0};
	char rate[NUMBER_RATE_MAX] = "";
	buf_puts(&state, site->state);
	if (site->tried_in_s > 0) {
		buf_puts(&state, " ");
		moment_put_span(&state, (int64_t)(site->tried_in_s * 1000));
	}
	if (site->rate >= 0)
		number_rate(rate, site->rate);
	buf_printf(line,
		   "%c %-*.*s %-*.*s %4" PRId64 " %4" PRId64 " %7" PRId64 " %8" PRId64 " %6s  %s",
		   chosen ? '>' : ' ', width, width, site->name, STATE, STATE, buf_cstr(&state),
		   site->window, site->busy, site->waiting, site->deferred, rate, site->last);
	buf_fini(&state);
}

static void print_table(const struct top_screen *s, const struct top_look *l, struct buf *line,
			struct buf *to)
{
	int n = top_screen_sites(s, l), width = name_width(s, l, n);
	buf_clear(line);
	buf_printf(line, "  %-*s %-*s %4s %4s %7s %8s %6s  %s", width, "DESTINATION", STATE,
		   "STATE", "WIN", "BUSY", "WAITING", "DEFERRED", "/S", "LAST FAILURE");
	put_line(to, buf_cstr(line), s->columns);
	for (int i = 0; i < n; i++) {
		buf_clear(line);
		put_site(&l->site[i], i == s->chosen, width, line);
		put_line(to, buf_cstr(line), s->columns);
	}
}

void top_screen_print(const struct top_screen *s, const struct top_look *l,
		      const struct top_look *before, int64_t now_ms, struct buf *to)
{
	struct buf line = {0}, all = {0};
	put_program(s, l, now_ms, &line);
	put_line(&all, buf_cstr(&line), s->columns);
	buf_clear(&line);
	put_rates(l, before, &line);
	put_line(&all, buf_cstr(&line), s->columns);
	buf_clear(&line);
	put_queues(l, &line);
	put_line(&all, buf_cstr(&line), s->columns);
	buf_clear(&line);
	put_slow(l, before, &line);
	put_line(&all, buf_cstr(&line), s->columns);
	print_conditions(s, l, &all);
	buf_puts(&all, "\n");
	print_table(s, l, &line, &all);
	buf_clear(&line);
	assert((size_t)s->order < TOP_ORDERS);
	buf_printf(
		&line,
		"by %s: [w]orst [a]waiting [d]eferred [r]ate [n]ame   up, down, Enter: see one   "
		"[p]ause [q]uit",
		titles[s->order]);
	put_line(&all, buf_cstr(&line), s->columns);
	const char *rest = buf_cstr(&all);
	for (int n = 0; *rest && n < s->rows; n++) {
		size_t len = strcspn(rest, "\n") + 1;
		buf_append(to, rest, len);
		rest += len;
	}
	buf_fini(&line);
	buf_fini(&all);
}

void top_screen_page(const struct top_screen *s, const char *text, struct buf *to)
{
	for (int n = 0; *text && n < s->rows - 1; n++) {
		put_line(to, text, s->columns);
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
	put_line(to, "Any key: back", s->columns);
}
