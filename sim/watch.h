/* watch.h - what must hold at every moment of a simulation, and what must be gone at its end.
 *
 * Windows, connections, messages and recipients within their limits; no entry beside a place that it
 * could have, nor at a site that nothing will ever look at again; no delivery before its time;
 * afterwards nothing left of any of them. That no recipient is lost or comes to two verdicts is
 * model_spool's to see.
 *
 * With up to some hundred messages and sites all is looked at after each step; with more of them less
 * often, so that a step costs the same.
 *
 * THREAD     main.
 * ERRORS     Faults in the tally; of recipients in memory pool_check() asserts.
 */
#ifndef SIM_WATCH_H
#define SIM_WATCH_H

#include "sim/stage.h"

struct entry;

void watch_now(struct stage *);			  /* after each wake-up of the scheduler */
void watch_sample(struct world *, int64_t at_ms); /* all sites */

int64_t
watch_rest_ms(const struct stage *); /* after that long with nothing to do all has to be gone: */
void watch_end(struct stage *);

void watch_begun(struct stage *, const char *site, const struct conf_transport *);
void watch_ended(struct stage *, const char *site);
/* A delivery to this site, by its key. */

void watch_goes_to(struct stage *, const char *site, const struct entry *);
/* The domains of its recipients are this site's. */

#endif
