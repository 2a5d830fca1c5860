/* SPDX-License-Identifier: ISC */
/* A picture: a column for each run (early, late), in it windows, busy connections and queues over
 * time, a line for each of the busiest sites. */
#include "sim/plot.h"
#include "sim/sim.h"
#include "sim/sim_flows_plot.h"

#include <math.h>
#include <stdio.h>

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

/* A stair: a value stands until the next sample. Of many samples in one point, the largest. */
static void draw_line(struct plot *p, const struct tally_site *s, int panel, const char *colour)
{
	int64_t each = s->nsample / POINTS + 1;
	buf_printf(p->to, "<path fill=\"none\" stroke-width=\"1.6\" stroke=\"%s\" d=\"", colour);
	for (int64_t i = 0; i < s->nsample; i += each) {
		double most = 0;
		for (int64_t k = i; k < i + each && k < s->nsample; k++)
			most = fmax(most, value_of(&s->sample[k], panel));
		double x = plot_x(p, (double)s->sample[i].at_ms);
		if (i == 0)
			buf_printf(p->to, "M%.1f %.1f", x, plot_y(p, most));
		else
			buf_printf(p->to, "H%.1fV%.1f", x, plot_y(p, most));
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
	plot_text(p, p->x, 46, "font-size=\"16\" font-weight=\"bold\"", line);
	snprintf(line, sizeof line, "%lld recipients, %.2f %% deferred, %.0f s",
		 (long long)t->recipients, tally_deferred_percent(t), (double)t->ended_ms / 1000);
	plot_text(p, p->x, 65, "", line);
	for (int i = 0; i < n; i++) {
		int y = TOP + PANELS * (PANEL + GAP) - 20 + i * 18;
		buf_printf(p->to, "<path d=\"M%d %dh24\" stroke-width=\"3\" stroke=\"%s\"/>\n",
			   p->x, y - 4, colours[i]);
		plot_text(p, p->x + 32, y, "", sites[i]->key);
	}
}

static void draw_run(const struct sim *sim, int column, struct buf *to)
{
	const struct sim_run *run = &sim->run[column];
	const struct tally_site *sites[LINES];
	int n = choose_sites(run->tally, sites);
	struct plot p = {.to = to,
			 .x = column * WIDTH + LEFT,
			 .width = WIDTH - LEFT - RIGHT,
			 .height = PANEL,
			 .t_most = time_of(sim)};
	draw_head(&p, run, sites, n);
	for (int panel = 0; panel < PANELS; panel++) {
		p.y = TOP + panel * (PANEL + GAP);
		p.v_most = most_of(sim, panel);
		plot_axes(&p, titles[panel]);
		for (int i = n - 1; i >= 0; i--)
			draw_line(&p, sites[i], panel, colours[i]);
	}
}

static void plot_sites(const struct sim *sim, struct buf *to)
{
	int width = sim->n * WIDTH, height = TOP + PANELS * (PANEL + GAP) + LINES * 18;
	struct plot p = {.to = to};
	plot_begin(&p, width, height);
	plot_text(&p, LEFT, 22, "font-size=\"13\" fill=\"#555\"", sim->scenario->file);
	for (int i = 0; i < sim->n; i++)
		draw_run(sim, i, to);
	buf_puts(to, "</svg>\n");
}

void sim_plot(const struct sim *sim, struct buf *to)
{
	if (sim->scenario->simulation.picture == PICTURE_FLOWS)
		sim_flows_plot(sim, to);
	else
		plot_sites(sim, to);
}
