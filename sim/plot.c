/* SPDX-License-Identifier: ISC */
#include "sim/plot.h"

#include <math.h>
#include <stdio.h>

enum { TIMES = 6, TIME_WIDTH = 90, VALUES = 5 };

/* Up to so long a time axis has this unit. */
static const struct {
	double most_ms, unit_ms;
	const char *name;
} units[] = {{600e3, 1000, "s"},
	     {36e6, 60e3, "min"},
	     {4 * 86400e3, 3600e3, "h"},
	     {INFINITY, 86400e3, "days"}};

void plot_begin(struct plot *p, int width, int height)
{
	buf_printf(p->to,
		   "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
		   "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n"
		   "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
		   width, height, width, height);
}

void plot_text(struct plot *p, double x, double y, const char *how, const char *what)
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

/* 1, 2 or 5 times a power of ten, so that there are about n steps to most. */
static double nice_step(double most, int n)
{
	double raw = most / n, ten = pow(10, floor(log10(raw > 0 ? raw : 1)));
	double times = raw / ten;
	return ten * (times <= 1 ? 1 : times <= 2 ? 2 : times <= 5 ? 5 : 10);
}

double plot_x(const struct plot *p, double t)
{
	return p->x + (t - p->t_least) / (p->t_most - p->t_least) * p->width;
}

double plot_y(const struct plot *p, double v)
{
	double part = v / p->v_most;
	if (p->v_least > 0)
		part = v > p->v_least ? log(v / p->v_least) / log(p->v_most / p->v_least) : 0;
	return p->y + p->height - part * p->height;
}

static void draw_value(struct plot *p, double v)
{
	char label[32];
	buf_printf(p->to, "<path d=\"M%d %.1fh%d\" stroke=\"#ddd\"/>\n", p->x, plot_y(p, v),
		   p->width);
	snprintf(label, sizeof label, "%.12g", v);
	plot_text(p, p->x - 7, plot_y(p, v) + 4, "text-anchor=\"end\"", label);
}

static void draw_values(struct plot *p)
{
	double step = nice_step(p->v_most, VALUES);
	for (double v = p->v_least; v <= p->v_most * 1.0001; v = p->v_least > 0 ? v * 10 : v + step)
		draw_value(p, v);
}

/* The steps of the time axis are of the unit that its labels have. */
static void draw_times(struct plot *p)
{
	int u = 0;
	double span = p->t_most - p->t_least;
	while (span >= units[u].most_ms)
		u++;
	double unit = units[u].unit_ms;
	int n = p->width / TIME_WIDTH;
	double step = nice_step(span / unit, n < TIMES ? n : TIMES) * unit;
	for (double t = ceil(p->t_least / step) * step; t <= p->t_most + span / 10000; t += step) {
		char label[32];
		buf_printf(p->to, "<path d=\"M%.1f %dv5\" stroke=\"#555\"/>\n", plot_x(p, t),
			   p->y + p->height);
		snprintf(label, sizeof label, "%.4g %s", t / unit, units[u].name);
		plot_text(p, plot_x(p, t), p->y + p->height + 19, "text-anchor=\"middle\"", label);
	}
}

void plot_axes(struct plot *p, const char *title)
{
	plot_text(p, p->x, p->y - 9, "font-weight=\"bold\"", title);
	draw_values(p);
	draw_times(p);
	buf_printf(p->to, "<path d=\"M%d %dv%dh%d\" fill=\"none\" stroke=\"#555\"/>\n", p->x, p->y,
		   p->height, p->width);
}
