/* trace.h - arrivals from the log of a relay.
 *
 * A queued event gives the time, the size and the number of recipients; the events of its
 * deliveries (sent, deferred, bounced, in_doubt) the domains. Recipients without any are given
 * domains of the arrival section. The relay's own reports are left out.
 *
 * THREAD     main.
 * ERRORS     As faults, with the lines of the log.
 */
#ifndef SIM_TRACE_H
#define SIM_TRACE_H

#include "sim/arrivals.h"

void trace_read(struct arrivals *, const struct scenario *, const struct scenario_arrival *,
		struct dice *, struct conf_faults *);

#endif
