/* source_choice.h - which source the mail of a flow comes from, today.
 *
 * Weighted rendezvous hashing: of flow, day and each source a number is made, whose odds to be the largest are as the weight; the largest
 * has it. So nothing is remembered, every node and every start comes to the same, and where a source is left out, or its weight
 * changes, only those flows move that must.
 *
 * Numbers in, a choice out.
 *
 * OWNERSHIP  None.
 * THREAD     Any.
 * ERRORS     None.
 * SEE        docs/decisions/0143; Thaler, Ravishankar 1998 (rendezvous hashing); Schindelhauer, Schomaker 2005 (weights).
 */
#ifndef QMGR_ROUTE_SOURCE_CHOICE_H
#define QMGR_ROUTE_SOURCE_CHOICE_H

#include "base/conf.h"

const struct conf_source *source_choose(const struct conf_uses *, const char *flow, int64_t date_ms,
					bool (*fits)(void *context, const struct conf_source *),
					void *context);
/* Of those that fit the one whose turn it is for this flow, on the day (UTC) of that time; NULL: none fits. fits may be NULL:
 * all do. */

const struct conf_uses *source_uses(const struct conf *, const struct conf_transport *,
				    const char *flow);
/* Those of the flow, or else of the transport; n is 0 where the system chooses. */

#endif
