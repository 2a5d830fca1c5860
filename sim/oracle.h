/* oracle.h - how long mail would take if the state of every host were known.
 *
 * Each message, in the order of arrival, takes the place where it is done first: behind others on a
 * connection, or on a further one, which takes its time to be set up. No connection fails; none
 * is opened beyond a limit, in an outage, or where an outage would cut it off; a host of a lesser
 * preference is used while no better one is in service and has a place. Among equals it is the one where the message
 * begins first, and by turns where that is the same, whichever is quicker then: RFC 5321 5.1. It is no
 * lower bound, but hard to better by much.
 *
 * OWNERSHIP  Reads the scenario and the arrivals.
 * THREAD     main.
 * ERRORS     None.
 */
#ifndef SIM_ORACLE_H
#define SIM_ORACLE_H

#include "sim/arrivals.h"

double oracle_mean_ms(const struct scenario *, const struct arrivals *);
/* Of a scenario with one site, one recipient a message, and the default transport. */

#endif
