/* SPDX-License-Identifier: ISC */
#include "sim/sim_flows_plot.h"

#include "base/mem.h"
#include "sim/flow_groups.h"
#include "sim/plot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	WIDTH = 620,  /* of the panels of the first column */
	NARROW = 380, /* and of the others */
	LEFT = 76,
	LEGENDS = 190,
	TOP = 122,
	DELAYS = 230, /* heights */
	DELIVERIES = 150,
	SOURCES = 150,
	STRIP = 13,
	PACES = 130,
	GAP = 58,
	LINES = 8,  /* of a panel */
	PIXELS = 4, /* of a bin, at least */
	PANELS = 4,
};

static const char *const colours[LINES] = {"#1f5fa8", "#2e8540", "#8b3a8f", "#6b6b6b",
					   "#b8860b", "#c8501e", "#0a9396", "#d62598"};

/* Lines of one panel, by name. */
struct lines {
	int n;
	char name[LINES][64];
	double *value[LINES]; /* of each bin; NAN: none */
};

struct picture {
	const struct sim *sim;
	const struct tally *tally;
	struct flow_groups groups;
	struct scenario_span span; /* of this column */
	bool first, last;	   /* is it? */
	double bin_ms;
	int nbin;
	int panel;
	double most[PANELS]; /* of the columns before: they have one scale */
	struct plot plot;
};

/* -1: it is in none. */
static int bin_of(const struct picture *p, int64_t ms)
{
	if (ms < p->span.from_ms || ms >= p->span.to_ms)
		return -1;
	int bin = (int)((double)(ms - p->span.from_ms) / p->bin_ms);
	return bin < p->nbin ? bin : p->nbin - 1;
}

static void add_to_bin(const struct picture *p, double *line, int64_t ms, double value)
{
	int bin = bin_of(p, ms);
	if (bin >= 0)
		line[bin] += value;
}

static double *new_line(const struct picture *p, double value)
{
	double *line = mem_zalloc((size_t)p->nbin * sizeof *line);
	for (int i = 0; i < p->nbin; i++)
		line[i] = value;
	return line;
}

/* NULL: there is no room for one more. */
static double *line_named(const struct picture *p, struct lines *l, const char *name, size_t len,
			  double value)
{
	for (int i = 0; i < l->n; i++)
		if (strlen(l->name[i]) == len && memcmp(l->name[i], name, len) == 0)
			return l->value[i];
	if (l->n == LINES)
		return NULL;
	snprintf(l->name[l->n], sizeof l->name[0], "%.*s", (int)len, name);
	return l->value[l->n++] = new_line(p, value);
}

static void free_lines(struct lines *l)
{
	for (int i = 0; i < l->n; i++)
		free(l->value[i]);
}

/* In the order of the names. */
static void sort_lines(struct lines *l)
{
	for (int i = 1; i < l->n; i++)
		for (int k = i; k > 0 && strcmp(l->name[k - 1], l->name[k]) > 0; k--) {
			char name[64];
			double *value = l->value[k];
			memcpy(name, l->name[k], sizeof name);
			memcpy(l->name[k], l->name[k - 1], sizeof name);
			memcpy(l->name[k - 1], name, sizeof name);
			l->value[k] = l->value[k - 1];
			l->value[k - 1] = value;
		}
}

static double most_of(const struct picture *p, const struct lines *l)
{
	double most = 1;
	for (int i = 0; i < l->n; i++)
		for (int b = 0; b < p->nbin; b++)
			if (l->value[i][b] > most)
				most = l->value[i][b];
	return most;
}

static void draw_line(const struct picture *p, const double *value, const char *colour,
		      const char *how)
{
	bool pen = false, logarithmic = p->plot.v_least > 0;
	buf_printf(p->plot.to, "<path fill=\"none\" stroke=\"%s\" %s d=\"", colour, how);
	for (int b = 0; b < p->nbin; b++) {
		double x = plot_x(&p->plot, (double)p->span.from_ms + b * p->bin_ms);
		bool any = !isnan(value[b]) && (value[b] > 0 || !logarithmic);
		if (any && pen)
			buf_printf(p->plot.to, "H%.1fV%.1f", x, plot_y(&p->plot, value[b]));
		else if (any)
			buf_printf(p->plot.to, "M%.1f %.1f", x, plot_y(&p->plot, value[b]));
		pen = any;
		if (pen)
			buf_printf(p->plot.to, "h%.2f", p->plot.width / (double)p->nbin);
	}
	buf_puts(p->plot.to, "\"/>\n");
}

static void draw_legend(struct picture *p, int line, const char *colour, const char *how,
			const char *name)
{
	if (!p->last)
		return;
	int x = p->plot.x + p->plot.width + 14, y = p->plot.y + 10 + line * 17;
	buf_printf(p->plot.to, "<path d=\"M%d %dh22\" stroke=\"%s\" %s/>\n", x, y - 4, colour, how);
	plot_text(&p->plot, x + 28, y, "", name);
}

static void draw_bands(struct picture *p, bool named)
{
	const struct scenario_simulation *s = &p->sim->scenario->simulation;
	for (int i = 0; i < s->nperiod; i++) {
		const struct scenario_span *span = &s->period[i].span;
		if (span->to_ms <= p->span.from_ms || span->from_ms >= p->span.to_ms)
			continue;
		double from = fmax(plot_x(&p->plot, (double)span->from_ms), p->plot.x);
		double to = fmin(plot_x(&p->plot, (double)span->to_ms), p->plot.x + p->plot.width);
		buf_printf(p->plot.to,
			   "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" "
			   "fill=\"#f4c430\" fill-opacity=\"0.25\"/>\n",
			   from, p->plot.y, to - from, p->plot.height);
		if (named)
			plot_text(&p->plot, (from + to) / 2, p->plot.y - 26 - 14 * (i % 2),
				  "text-anchor=\"middle\" fill=\"#8a6d00\"", s->period[i].name);
	}
}

static void begin_panel(struct picture *p, int height, double least, double most, bool named,
			const char *title)
{
	most = p->most[p->panel] = fmax(most, p->most[p->panel]);
	p->panel++;
	p->plot.height = height;
	p->plot.v_least = least;
	p->plot.v_most = least > 0 ? least * pow(10, ceil(log10(most / least))) : most * 1.05;
	draw_bands(p, named);
	plot_axes(&p->plot, title);
}

static void end_panel(struct picture *p, int more)
{
	p->plot.y += p->plot.height + more + GAP;
}

static void add_wait(const struct picture *p, struct numbers *waits, const struct tally_fate *f)
{
	int bin = bin_of(p, f->came_ms);
	if (bin >= 0)
		numbers_add(&waits[bin], f->wait_ms);
}

/* Median and 99 % of what came in each bin. */
static void measure_delays(const struct picture *p, int group, double *median, double *most)
{
	struct numbers *waits = mem_zalloc((size_t)p->nbin * sizeof *waits);
	for (int64_t i = 0; i < p->tally->nfate; i++) {
		const struct tally_fate *f = &p->tally->fate[i];
		if (f->wait_ms >= 0 && flow_groups_of(&p->groups, f->flow) == group)
			add_wait(p, waits, f);
	}
	for (int b = 0; b < p->nbin; b++) {
		if (waits[b].n > 0) {
			median[b] = (double)numbers_quantile(&waits[b], 0.5) / 1000;
			most[b] = (double)numbers_quantile(&waits[b], 0.99) / 1000;
		}
		free(waits[b].value);
	}
	free(waits);
}

static void say_bin(const struct picture *p, char *to, size_t size)
{
	if (p->bin_ms < 3600e3)
		snprintf(to, size, "%.0f min", p->bin_ms / 60e3);
	else
		snprintf(to, size, "%.0f h", p->bin_ms / 3600e3);
}

static const char of_median[] = "stroke-width=\"1.6\"";
static const char of_most[] = "stroke-width=\"1\" stroke-dasharray=\"2 1.5\"";

static void draw_delays(struct picture *p)
{
	double *median[FLOW_GROUPS_MAX + 1], *most[FLOW_GROUPS_MAX + 1], longest = 1;
	char title[128], name[96], each[32];
	for (int g = 0; g < p->groups.n; g++) {
		median[g] = new_line(p, NAN);
		most[g] = new_line(p, NAN);
		measure_delays(p, g, median[g], most[g]);
		for (int b = 0; b < p->nbin; b++)
			longest = fmax(longest, isnan(most[g][b]) ? 0 : most[g][b]);
	}
	say_bin(p, each, sizeof each);
	snprintf(title, sizeof title, "seconds until delivered, of what came in %s", each);
	begin_panel(p, DELAYS, 0.1, longest, true, title);
	for (int g = 0; g < p->groups.n; g++) {
		draw_line(p, most[g], colours[g], of_most);
		draw_line(p, median[g], colours[g], of_median);
		snprintf(name, sizeof name, "%s, median", p->groups.name[g]);
		draw_legend(p, 2 * g, colours[g], of_median, name);
		draw_legend(p, 2 * g + 1, colours[g], of_most, "99 %");
		free(median[g]);
		free(most[g]);
	}
	end_panel(p, 0);
}

static void draw_lines(struct picture *p, const struct lines *l)
{
	for (int i = 0; i < l->n; i++) {
		draw_line(p, l->value[i], colours[i], of_median);
		draw_legend(p, i, colours[i], of_median, l->name[i]);
	}
}

static void draw_deliveries(struct picture *p)
{
	struct lines l = {0};
	for (int g = 0; g < p->groups.n; g++)
		line_named(p, &l, p->groups.name[g], strlen(p->groups.name[g]), 0);
	for (int64_t i = 0; i < p->tally->nfate; i++) {
		const struct tally_fate *f = &p->tally->fate[i];
		if (f->wait_ms >= 0)
			add_to_bin(p, l.value[flow_groups_of(&p->groups, f->flow)],
				   f->came_ms + f->wait_ms, 3600e3 / p->bin_ms);
	}
	begin_panel(p, DELIVERIES, 1, most_of(p, &l), false, "recipients delivered an hour");
	draw_lines(p, &l);
	end_panel(p, 0);
	free_lines(&l);
}

static const char *source_of(const struct tally_site *site)
{
	const char *from = site ? strstr(site->key, " from=") : NULL;
	return from ? from + strlen(" from=") : NULL;
}

/* One of its hosts blocks an address of ours at some time. */
static bool has_blocking_host(const struct picture *p, const struct tally_site *site)
{
	const struct scenario *s = p->sim->scenario;
	for (int i = 0; i < s->nhost; i++)
		if (s->host[i].nblocked > 0 && strstr(site->key, s->host[i].title))
			return true;
	return false;
}

static void count_source(const struct picture *p, struct lines *l, const struct tally_fate *f)
{
	const char *source = source_of(f->site);
	if (!source || f->wait_ms < 0 || !has_blocking_host(p, f->site))
		return;
	double *line = line_named(p, l, source, strlen(source), 0);
	if (line)
		add_to_bin(p, line, f->came_ms + f->wait_ms, 3600e3 / p->bin_ms);
}

static void draw_shut(struct picture *p, const struct sample *sample, int64_t n, int y,
		      const char *colour)
{
	for (int64_t k = 0; k < n; k++) {
		if (!sample[k].shut || bin_of(p, sample[k].at_ms) < 0)
			continue;
		double from = plot_x(&p->plot, (double)sample[k].at_ms);
		int64_t end_ms =
			sample[k].at_ms + p->tally->sample_ms; /* then it may be forgotten */
		double to =
			plot_x(&p->plot, (double)(end_ms < p->span.to_ms ? end_ms : p->span.to_ms));
		buf_printf(p->plot.to,
			   "<path d=\"M%.1f %dh%.2f\" stroke=\"%s\" stroke-width=\"9\"/>\n", from,
			   y, fmin(to - from, p->plot.width), colour);
	}
}

/* When a source was shut somewhere: a strip below the panel. */
static void draw_strips(struct picture *p, const struct lines *l)
{
	for (int i = 0; i < l->n; i++) {
		char name[96], at[96];
		int y = p->plot.y + p->plot.height + 32 + i * STRIP;
		snprintf(name, sizeof name, "%s shut", l->name[i]);
		snprintf(at, sizeof at, "@%s", l->name[i]);
		if (p->first)
			plot_text(&p->plot, p->plot.x - 7, y + 4, "text-anchor=\"end\"", name);
		for (const struct tally_provider *o = p->tally->providers; o; o = o->hh.next)
			if (strstr(o->key, at))
				draw_shut(p, o->sample, o->nsample, y, colours[i]);
		for (const struct tally_site *o = p->tally->sites; o; o = o->hh.next)
			if (source_of(o) && strcmp(source_of(o), l->name[i]) == 0)
				draw_shut(p, o->sample, o->nsample, y, colours[i]);
	}
}

static void draw_sources(struct picture *p)
{
	struct lines l = {0};
	for (int64_t i = 0; i < p->tally->nfate; i++)
		count_source(p, &l, &p->tally->fate[i]);
	sort_lines(&l);
	begin_panel(p, SOURCES, 1, most_of(p, &l), false,
		    p->first ? "recipients delivered an hour where a source is blocked, by source"
			     : "the same by source");
	draw_lines(p, &l);
	draw_strips(p, &l);
	end_panel(p, l.n * STRIP + 12);
	free_lines(&l);
}

/* "bucket@a": the source with most has the line of all. */
static void add_pace(const struct picture *p, struct lines *l, const struct tally_provider *o)
{
	bool any = false;
	for (int64_t k = 0; k < o->nsample; k++)
		any |= o->sample[k].pace > 0;
	double *line = any ? line_named(p, l, o->key, strcspn(o->key, "@"), NAN) : NULL;
	for (int64_t k = 0; line && k < o->nsample; k++) {
		int bin = bin_of(p, o->sample[k].at_ms);
		if (bin >= 0 && o->sample[k].pace > 0 && !(line[bin] >= o->sample[k].pace))
			line[bin] = o->sample[k].pace;
	}
}

static void draw_paces(struct picture *p)
{
	struct lines l = {0};
	for (const struct tally_provider *o = p->tally->providers; o; o = o->hh.next)
		add_pace(p, &l, o);
	sort_lines(&l);
	begin_panel(
		p, PACES, 0.1, most_of(p, &l), false,
		p->first
			? "pace of providers that have one, deliveries a second, the fastest source"
			: "pace");
	draw_lines(p, &l);
	end_panel(p, 0);
	free_lines(&l);
}

static void draw_head(struct picture *p, const struct sim_run *run)
{
	char line[200];
	plot_text(&p->plot, LEFT, 24, "font-size=\"13\" fill=\"#555\"", p->sim->scenario->file);
	snprintf(line, sizeof line, "%s%s%lld recipients of %u flows, %.1f days",
		 run->row ? run->row->title : "", run->row ? ": " : "",
		 (long long)p->tally->recipients, HASH_COUNT(p->tally->flows),
		 (double)p->tally->ended_ms / 86400e3);
	plot_text(&p->plot, LEFT, 46, "font-size=\"16\" font-weight=\"bold\"", line);
}

/* Bins of a whole number of minutes, or of hours. */
static double bin_for(double span_ms, int width)
{
	static const double minutes[] = {1, 2, 5, 10, 15, 30, 60, 120, 240, 360, 720, 1440};
	size_t i = 0;
	while (i + 1 < sizeof minutes / sizeof *minutes &&
	       span_ms / (minutes[i] * 60e3) > width / PIXELS)
		i++;
	return minutes[i] * 60e3;
}

static void draw_column(struct picture *p, int x, int width)
{
	double span_ms = (double)(p->span.to_ms - p->span.from_ms);
	p->bin_ms = bin_for(span_ms, width);
	p->nbin = (int)ceil(span_ms / p->bin_ms);
	p->panel = 0;
	p->plot.x = x;
	p->plot.y = TOP;
	p->plot.width = width;
	p->plot.t_least = (double)p->span.from_ms;
	p->plot.t_most = (double)p->span.from_ms + p->nbin * p->bin_ms;
	draw_delays(p);
	draw_deliveries(p);
	draw_sources(p);
	draw_paces(p);
}

void sim_flows_plot(const struct sim *sim, struct buf *to)
{
	const struct scenario_simulation *s = &sim->scenario->simulation;
	const struct tally *t = sim->run[0].tally;
	const struct scenario_span all = {0, t->ended_ms + 1};
	int n = s->ncolumn == 0 ? 1 : s->ncolumn;
	int height = TOP + DELAYS + DELIVERIES + SOURCES + PACES + 4 * GAP + LINES / 2 * STRIP;
	int x = LEFT;
	struct picture p = {.sim = sim, .tally = t, .plot = {.to = to}};
	plot_begin(&p.plot, n * LEFT + WIDTH + (n - 1) * NARROW + LEGENDS, height);
	flow_groups_find(&p.groups, t);
	draw_head(&p, &sim->run[0]);
	for (int i = 0; i < n; i++) {
		int width = i == 0 ? WIDTH : NARROW;
		p.first = i == 0;
		p.last = i == n - 1;
		p.span = s->ncolumn > 0 ? s->column[i] : all;
		draw_column(&p, x, width);
		x += width + LEFT;
	}
	buf_puts(to, "</svg>\n");
}
