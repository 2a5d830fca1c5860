/* top_screen.h - one screen of `sluice top`, fitted to the terminal.
 *
 *	sluice 0.1   up 3 h   takes mail   12:05:30
 *	in 12/s   sent 11/s   deferred 0.5/s   bounced 0/s   rejected 0/s
 *	incoming 0   active 40   deferred 1200   hold 3   on disk 84 MB
 *	slow: in queue 3.2 s, connecting 0.4 s, transmission 80 ms; commit 4 ms
 *
 *	   DESTINATION          STATE    WINDOW  BUSY  WAITING  DEFERRED  /S   LAST
 *	 > mx.dest.test         out 30 s      0     0       12      1100   0   mx refused the connection
 *
 * Numbers in, text out.
 *
 * THREAD     Any.
 * ERRORS     None.
 */
#ifndef CMD_OPERATOR_TOP_SCREEN_H
#define CMD_OPERATOR_TOP_SCREEN_H

#include "cmd/operator/top_look.h"

enum top_order { TOP_WORST, TOP_WAITING, TOP_DEFERRED, TOP_RATE, TOP_NAME, TOP_ORDERS };

enum { TOP_SITES = 10 }; /* shown at most */

struct top_screen {
	int rows, columns;
	enum top_order order;
	int chosen; /* row of the table, from 0 */
	bool paused;
};

void top_screen_sort(const struct top_screen *, struct top_look *);
/* The sites; by TOP_WORST as the relay gave them. */

int top_screen_sites(const struct top_screen *, const struct top_look *);
/* How many have room. */

void top_screen_print(const struct top_screen *, const struct top_look *,
		      const struct top_look *before, int64_t now_ms, struct buf *to);
/* Lines without controls, none wider than the screen, and no more of them. */

void top_screen_page(const struct top_screen *, const char *text, struct buf *to);
/* The same for a text: what fits of it, and how to go back. */

#endif
