/* SPDX-License-Identifier: ISC */
/* Places among the active messages: how many are free, and whose the others are. */
#include "spool/spool_core.h"

#include <assert.h>

uint16_t places_row(struct spool *s, const struct envelope *e)
{
	const char *flow = envelope_flow(e);
	uint16_t row = inflow_row_of(flow);
	inflow_know(&s->incoming, row, conf_flow_find(s->conf, flow));
	inflow_know(&s->incoming, 0, s->conf->flow);
	return row;
}

void places_take(struct spool *s, uint16_t row)
{
	assert(s->credit > 0);
	s->credit--;
	inflow_hold(&s->incoming, row);
}

void places_give_back(struct spool *s, uint16_t row)
{
	s->credit++;
	inflow_let_go(&s->incoming, row);
}
