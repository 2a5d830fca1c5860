/* selection.h - which entry is next: the scheduler's order of jobs, and who slips past.
 *
 *	order:  jobs by the age of their message, and in front of each who slipped past it
 *
 *	transport --- sites with a place          (heap, by their first peer)
 *	          --- sites that want to grow     (heap, likewise)
 *	                 |
 *	                 +--- peers that can be selected   (heap, by the order of their jobs,
 *	                                                    those of one job in turn)
 *	                 +--- shelves: the same peers by the number of entries of their jobs, by age
 *
 * The current job is the first whose peer leads to one of those sites; all jobs before it are
 * blockers. Nothing is walked: what POSTFIX finds by going along the job list past blockers is the
 * top of a heap here, and a site that frees a place unblocks all its jobs by entering one.
 *
 * The candidates to slip past the current job lie on shelves: shelf.h.
 *
 * STATES     A site is QUIET, PLACED or HUNGRY; site.c says which.
 * THREAD     qmgr.
 * SEE        POSTFIX SCHEDULER_README, "How the entry selection works"; POSTFIX qmgr_job.c.
 */
#ifndef QMGR_SELECTION_H
#define QMGR_SELECTION_H

#include "qmgr/job.h"
#include "qmgr/site.h"

void selection_init(struct transport *);
void selection_fini(struct transport *);

void selection_init_site(struct site *);
void selection_fini_site(struct site *);

void selection_update(struct peer *);
/* The number of its entries that can be selected has changed. */

void selection_retire(struct job *);
/* It leaves the stack. Harmless on one that is not in it. */

void selection_set(struct site *, enum site_state);

struct peer *selection_next(struct transport *, bool may_open);
/* Whose turn it is. May let a job slip past the current one. may_open: sites that want to grow count.
 * NULL: nobody's. */

void selection_took_turn(struct peer *);
/* One of its entries was selected: other peers of the job come before it. */

struct peer *selection_other(const struct site *, bool (*fits)(const struct peer *));
/* The first at this site, or one of the first, that fits. */

#endif
