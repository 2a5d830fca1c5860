/* sim_flows_plot.h - a picture of who waited and why: delays and deliveries by groups of flows, sources, paces, over time.
 *
 *	panels, from above: how long what came in an hour took; what was delivered; from which source at the receivers that block
 *	one, and where each was shut; paces. Bands are the periods of the scenario.
 *
 * THREAD     main.
 * ERRORS     None.
 * SEE        sluice-sim(5), "picture".
 */
#ifndef SIM_SIM_FLOWS_PLOT_H
#define SIM_SIM_FLOWS_PLOT_H

#include "sim/sim.h"

void sim_flows_plot(const struct sim *, struct buf *to); /* SVG; of the first run */

#endif
