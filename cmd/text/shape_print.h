/* shape_print.h - the shape of the queue as qshape prints it, and as JSON.
 *
 * Rows in, text out. Domains come from peers: controls in them are replaced.
 *
 *	                    T  5 10 20 40 ... 1280+		heading
 *	           TOTAL   14  0  0  1  0 ...    12		the row of all, always first
 *	     example.com   10  0  0  1  0 ...     8		the others
 *	.+rent.a-long.example				a parent's name that is cut
 *
 * DIFFERS: qshape sorts TOTAL among the rest, so that a short name with all of the mail comes above
 * it.
 *
 * THREAD     Any.
 * ERRORS     None.
 * SEE        POSTFIX QSHAPE_README.
 */
#ifndef CMD_TEXT_SHAPE_PRINT_H
#define CMD_TEXT_SHAPE_PRINT_H

#include "base/buf.h"
#include "spool/shape.h"

struct shape_view {
	const struct shape *shape;
	double minutes; /* width of the first bucket */
	bool color;	/* by weight: for a terminal */
	int name_width;
	int column[SHAPE_BUCKETS_MAX + 1]; /* widths: of the total, and of each bucket */
};

void shape_view_init(struct shape_view *, const struct shape *, double minutes, int width,
		     bool color);

void shape_print_heading(struct buf *, const struct shape_view *); /* and the row of all */
void shape_print_row(struct buf *, const struct shape_view *, const struct shape_row *);

void shape_print_json(struct buf *, const struct shape_view *, const struct shape_row *);
/* One object, one line; shape->all is a row too. */

bool shape_row_is_parent(const struct shape_row *);

#endif
