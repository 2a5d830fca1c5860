/* staging.h - one node of a simulation begins, takes its turns, and ends: qmgr, the cluster, and the models around them.
 *
 * OWNERSHIP  staging_init() to staging_fini(); the struct is the world's.
 * THREAD     main.
 * ERRORS     What must never be is noted in the tally as a fault.
 */
#ifndef SIM_STAGING_H
#define SIM_STAGING_H

#include "sim/stage.h"

void staging_init(struct stage *, struct world *, int number, const struct arrivals *);
void staging_settle(struct stage *); /* its loops run, until they have nothing more to do */
void staging_end(struct stage *);    /* nothing is asked or told any more */
void staging_fini(struct stage *);

#endif
