/* line.h - who stands in front of whom: places in an order that never run out.
 *
 * A line holds one who is at home, the last, and those that have slipped past: each was put in front of one
 * that stood there. Places are numbers, so that a heap can compare them. Where the numbers between two are used up, all of the
 * line get new ones in the same order, evenly apart.
 *
 *	0 ... moved ... moved ... moved ... home = UINT64_MAX
 *
 * How often: a newcomer takes a thousandth of the gap, so a line of n has room for tens of thousands in front of
 * one and the same before that; each that stands in front of the one before it takes ten bits, of 64 less log2 n. So
 * deep it does not get: a job's child has at most a half of the entries that the job has (preempt.h).
 *
 * OWNERSHIP  Places lie in their objects; a line is the ring of its places, and has nothing else.
 * THREAD     qmgr.
 * ERRORS     None; misuse asserts.
 * SEE        Dietz and Sleator 1987, order maintenance.
 */
#ifndef QMGR_SCHED_LINE_H
#define QMGR_SCHED_LINE_H

#include "base/list.h"

#include <stdbool.h>
#include <stdint.h>

#define LINE_HOME UINT64_MAX

struct line_place {
	struct list ring;
	uint64_t at; /* LINE_HOME: at home */
};

void line_init(struct line_place *, bool home);
/* At home in a line of its own; or in none. */

void line_leave(struct line_place *); /* harmless in none */

void line_enter(struct line_place *before, struct line_place *newcomer,
		void (*moved)(struct line_place *));
/* The newcomer, in no line, comes directly in front of the other. moved(): is called for each other one that has got a
 * new place. */

#endif
