/* plot.h - what pictures are drawn with: panels with axes, in SVG.
 *
 * OWNERSHIP  Embedded; writes to the caller's buf.
 * THREAD     main. Pure.
 * ERRORS     None.
 */
#ifndef SIM_PLOT_H
#define SIM_PLOT_H

#include "base/buf.h"

#include <stdbool.h>

/* A panel. */
struct plot {
	struct buf *to;
	int x, y, width, height; /* x, y: of its upper left */
	double t_least, t_most;	 /* ms */
	double v_least,
		v_most; /* v_least: of a logarithmic axis, which ends at powers of ten; 0: it is linear, from 0 */
};

void plot_begin(struct plot *, int width, int height); /* of the picture; "</svg>" ends it */
void plot_text(struct plot *, double x, double y, const char *how, const char *what);
/* how: attributes. */

void plot_axes(struct plot *, const char *title);
double plot_x(const struct plot *, double t);
double plot_y(const struct plot *, double v); /* what is below a logarithmic axis is at its end */

#endif
