/* SPDX-License-Identifier: ISC */
/* A picture: a column for each run (early, late), in it windows, busy connections and queues over
 * time, a line for each of the busiest sites. */
#include "sim/sim.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
	WIDTH = 620, /* of a column */
	LEFT = 64,
	RIGHT = 20,
	TOP = 96, /* of the first panel */
	PANEL = 190,
	GAP = 62,
	PANELS = 3,
	LINES = 5,
	POINTS = 1000, /* of a line at most */
};

static const char *const colours[LINES] = {"#1f5fa8", "#c8501e", "#2e8540", "#8b3a8f", "#6b6b6b"};
static const char *const titles[PANELS] = {"window", "busy connections", "entries waiting"};

struct plot {
	struct buf *to;
	int x, y; /* of the panel's upper left */
	double t_most, v_most;
};

static double value_of(const struct sample *s, int panel)
{
	switch (panel) {
	case 0:
		return s->window;
	case 1:
		return s->busy;
	default:
		return (double)s->waiting;
	}
}

/* The busiest sites, most feedback first. */
static int choose_sites(const struct tally *t, const struct tally_site **to)
{
	int n = 0;
	for (const struct tally_site *s = t->sites; s; s = s->hh.next) {
		int at = n < LINES ? n++ : LINES;
		for (; at > 0 && to[at - 1]->feedbacks < s->feedbacks; at--)
			if (at < LINES)
				to[at] = to[at - 1];
		if (at < LINES)
			to[at] = s;
	}
	return n;
}

/* 1, 2 or 5 times a power of ten, so that there are about n steps to most. */
static double nice_step(double most, int n)
{
	double raw = most / n, ten = pow(10, floor(log10(raw > 0 ? raw : 1)));
	double times = raw / ten;
	return ten * (times <= 1 ? 1 : times <= 2 ? 2 : times <= 5 ? 5 : 10);
}

static double at_x(const struct plot *p, double t)
{
	return p->x + t / p->t_most * (WIDTH - LEFT - RIGHT);
}

static double at_y(const struct plot *p, double v)
{
	return p->y + PANEL - v / p->v_most * PANEL;
}

static void text(struct plot *p, double x, double y, const char *how, const char *what)
{
	buf_printf(p->to, "<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, how);
	for (; *what; what++)
		switch (*what) {
		case '<':
			buf_puts(p->to, "&lt;");
			break;
		case '&':
			buf_puts(p->to, "&amp;");
			break;
		default:
			buf_append(p->to, what, 1);
		}
	buf_puts(p->to, "</text>\n");
}

static void time_label(double ms, double most_ms, char *to, size_t size)
{
	if (most_ms < 10 * 60000.0)
		snprintf(to, size, "%g s", ms / 1000);
	else if (most_ms < 10 * 3600000.0)
		snprintf(to, size, "%.4g min", ms / 60000);
	else
		snprintf(to, size, "%.4g h", ms / 3600000);
}

/* The steps of the time axis are of the unit that its labels have. */
static double time_step(double most_ms)
{
	double unit = most_ms < 10 * 60000.0 ? 1000 : most_ms < 10 * 3600000.0 ? 60000 : 3600000;
	return nice_step(most_ms / unit, 6) * unit;
}

static void draw_axes(struct plot *p, const char *title)
{
	char label[32];
	text(p, p->x, p->y - 9, "font-weight=\"bold\"", title);
	double step = nice_step(p->v_most, 5);
	for (double v = 0; v <= p->v_most + step / 100; v += step) {
		buf_printf(p->to, "<path d=\"M%d %.1fH%d\" stroke=\"#ddd\"/>\n", p->x, at_y(p, v),
			   p->x + WIDTH - LEFT - RIGHT);
		snprintf(label, sizeof label, "%g", v);
		text(p, p->x - 7, at_y(p, v) + 4, "text-anchor=\"end\"", label);
	}
	step = time_step(p->t_most);
	for (double t = 0; t <= p->t_most * 1.0001; t += step) {
		buf_printf(p->to, "<path d=\"M%.1f %dv5\" stroke=\"#555\"/>\n", at_x(p, t),
			   p->y + PANEL);
		time_label(t, p->t_most, label, sizeof label);
		text(p, at_x(p, t), p->y + PANEL + 19, "text-anchor=\"middle\"", label);
	}
	buf_printf(p->to, "<path d=\"M%d %dV%dH%d\" fill=\"none\" stroke=\"#555\"/>\n", p->x, p->y,
		   p->y + PANEL, p->x + WIDTH - LEFT - RIGHT);
}

/* A stair: a value stands until the next sample. Of many samples in one point, the largest. */
static void draw_line(struct plot *p, const struct tally_site *s, int panel, const char *colour)
{
	int64_t each = s->nsample / POINTS + 1;
	buf_printf(p->to, "<path fill=\"none\" stroke-width=\"1.6\" stroke=\"%s\" d=\"", colour);
	for (int64_t i = 0; i < s->nsample; i += each) {
		double most = 0;
		for (int64_t k = i; k < i + each && k < s->nsample; k++)
			most = fmax(most, value_of(&s->sample[k], panel));
		double x = at_x(p, (double)s->sample[i].at_ms);
		if (i == 0)
			buf_printf(p->to, "M%.1f %.1f", x, at_y(p, most));
		else
			buf_printf(p->to, "H%.1fV%.1f", x, at_y(p, most));
	}
	buf_puts(p->to, "\"/>\n");
}

/* One scale for all columns, so that they can be compared. */
static double most_of(const struct sim *sim, int panel)
{
	double most = 1;
	for (int i = 0; i < sim->n; i++)
		for (const struct tally_site *s = sim->run[i].tally->sites; s; s = s->hh.next)
			for (int64_t k = 0; k < s->nsample; k++)
				most = fmax(most, value_of(&s->sample[k], panel));
	return most * 1.05;
}

static double time_of(const struct sim *sim)
{
	double most = 1;
	for (int i = 0; i < sim->n; i++)
		most = fmax(most, (double)sim->run[i].tally->ended_ms);
	return most;
}

static void draw_head(struct plot *p, const struct sim_run *run, const struct tally_site **sites,
		      int n)
{
	char line[200];
	const struct tally *t = run->tally;
	snprintf(line, sizeof line, "%s%s%s binding", run->row ? run->row->title : "",
		 run->row ? ", " : "", run->early ? "early" : "late");
	text(p, p->x, 46, "font-size=\"16\" font-weight=\"bold\"", line);
	snprintf(line, sizeof line, "%lld recipients, %.2f %% deferred, %.0f s",
		 (long long)t->recipients, tally_deferred_percent(t), (double)t->ended_ms / 1000);
	text(p, p->x, 65, "", line);
	for (int i = 0; i < n; i++) {
		int y = TOP + PANELS * (PANEL + GAP) - 20 + i * 18;
		buf_printf(p->to, "<path d=\"M%d %dh24\" stroke-width=\"3\" stroke=\"%s\"/>\n",
			   p->x, y - 4, colours[i]);
		text(p, p->x + 32, y, "", sites[i]->key);
	}
}

static void draw_run(const struct sim *sim, int column, struct buf *to)
{
	const struct sim_run *run = &sim->run[column];
	const struct tally_site *sites[LINES];
	int n = choose_sites(run->tally, sites);
	struct plot p = {.to = to, .x = column * WIDTH + LEFT, .t_most = time_of(sim)};
	draw_head(&p, run, sites, n);
	for (int panel = 0; panel < PANELS; panel++) {
		p.y = TOP + panel * (PANEL + GAP);
		p.v_most = most_of(sim, panel);
		draw_axes(&p, titles[panel]);
		for (int i = n - 1; i >= 0; i--)
			draw_line(&p, sites[i], panel, colours[i]);
	}
}

void sim_plot(const struct sim *sim, struct buf *to)
{
	int width = sim->n * WIDTH, height = TOP + PANELS * (PANEL + GAP) + LINES * 18;
	struct plot p = {.to = to};
	buf_printf(to,
		   "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
		   "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n"
		   "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
		   width, height, width, height);
	text(&p, LEFT, 22, "font-size=\"13\" fill=\"#555\"", sim->scenario->file);
	for (int i = 0; i < sim->n; i++)
		draw_run(sim, i, to);
	buf_puts(to, "</svg>\n");
}
