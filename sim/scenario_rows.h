/* scenario_rows.h - scenario_table.h as data, and the checks behind it.
 *
 * OWNERSHIP  Constant.
 * THREAD     main.
 */
#ifndef SIM_SCENARIO_ROWS_H
#define SIM_SCENARIO_ROWS_H

#include "base/conf_build.h"
#include "sim/scenario.h"

/* Kinds of section beyond those of sluice.conf. */
enum scenario_kind {
	SCENARIO_KIND_SIMULATION = CONF_KINDS,
	SCENARIO_KIND_REDIS,
	SCENARIO_KIND_ARRIVAL,
	SCENARIO_KIND_SITE,
	SCENARIO_KIND_HOST,
	SCENARIO_KIND_ROW,
	SCENARIO_KINDS
};

void scenario_check(struct scenario *, const struct conf_lines *, struct conf_faults *);

void scenario_check_nodes(const struct scenario *, const struct conf_lines *, struct conf_faults *);
/* Can there be as many nodes as it wants? */

/* Faults that no single value shows; fills in what is derived. */

#endif
