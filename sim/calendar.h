/* calendar.h - a host's outages, and how many connections it serves, by time.
 *
 * Times are milliseconds since the start.
 *
 * OWNERSHIP  Reads the scenario.
 * THREAD     main.
 * ERRORS     None.
 */
#ifndef SIM_CALENDAR_H
#define SIM_CALENDAR_H

#include "sim/scenario.h"

bool calendar_out(const struct scenario_host *, int64_t at_ms);
int64_t calendar_next_outage_ms(const struct scenario_host *, int64_t at_ms);
/* When the first begins that comes later; INT64_MAX: none does. */

int64_t calendar_back_ms(const struct scenario_host *, int64_t at_ms);
/* When it is in service, from that time on; at_ms where it is. */

int64_t calendar_limit(const struct scenario_host *, int64_t at_ms); /* 0: none */

bool calendar_blocked(const struct scenario_host *, const char *source, int64_t at_ms);
/* The host wants nothing from this address then; NULL is none of ours. */

#endif
