/* sim_periods.h - what came in each period of a scenario, by groups of flows: how long it took.
 *
 * THREAD     main.
 * ERRORS     None.
 * SEE        sluice-sim(5), "periods".
 */
#ifndef SIM_SIM_PERIODS_H
#define SIM_SIM_PERIODS_H

#include "sim/sim.h"

void sim_periods_report(const struct sim *, const struct sim_run *, struct buf *to);
void sim_periods_json(const struct sim *, const struct sim_run *, struct buf *to);

#endif
