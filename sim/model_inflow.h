/* model_inflow.h - mail that was not tried yet, and whose is handed over next: as the relay's spool does it (spool/inflow.h), which the
 * simulation's stands for.
 *
 * Flows have turns by their weights, and one may have another place among the active messages while it holds fewer than its share leaves
 * room for. Mail without a flow has turns like one flow, and no bound: so it was before there were flows, and so a scenario without
 * any is to come out.
 *
 * OWNERSHIP  Embedded; the links are the caller's.
 * THREAD     main.
 * ERRORS     None; misuse asserts.
 */
#ifndef SIM_MODEL_INFLOW_H
#define SIM_MODEL_INFLOW_H

#include "base/conf.h"
#include "base/keyed_hash.h"
#include "base/list.h"

#include <stdbool.h>
#include <stdint.h>

struct model_inflow_row {
	char *flow;
	struct list waiting;
	int64_t held; /* active messages */
	int64_t weight, share;
	uint64_t start; /* virtual time */
	UT_hash_handle hh;
};

struct model_inflow {
	const struct conf *conf;
	struct model_inflow_row none; /* mail without a flow */
	struct model_inflow_row *rows;
	int64_t held; /* of all */
	uint64_t time;
};

void model_inflow_init(struct model_inflow *, const struct conf *); /* which stays */
void model_inflow_fini(struct model_inflow *);

struct model_inflow_row *model_inflow_row(struct model_inflow *,
					  const char *flow); /* NULL: without one */

struct model_inflow_row *model_inflow_next(struct model_inflow *, int64_t nfree);
/* Whose first is to be handed over, where so many places are free; NULL: nobody's. */

bool model_inflow_spare(const struct model_inflow *, int64_t nfree);
/* Mail that was tried before may have one: what is new has the last ones. */

void model_inflow_served(struct model_inflow *,
			 struct model_inflow_row *); /* the first of it leaves */
void model_inflow_hold(struct model_inflow *,
		       struct model_inflow_row *); /* a message of it is active */
void model_inflow_let_go(struct model_inflow *, struct model_inflow_row *); /* no more */

#endif
