/* SPDX-License-Identifier: ISC */
#include "sim/model_inflow.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { PERCENT = 100 };
#define UNIT (UINT64_C(1) << 20)

void model_inflow_init(struct model_inflow *in, const struct conf *conf)
{
	*in = (struct model_inflow){.conf = conf, .none = {.weight = 1, .share = PERCENT}};
	list_init(&in->none.waiting);
}

void model_inflow_fini(struct model_inflow *in)
{
	hash_each (struct model_inflow_row, r, in->rows) {
		HASH_DEL(in->rows, r);
		free(r->flow);
		free(r);
	}
}

struct model_inflow_row *model_inflow_row(struct model_inflow *in, const char *flow)
{
	struct model_inflow_row *r = &in->none;
	if (flow)
		HASH_FIND_STR(in->rows, flow, r);
	if (r)
		return r;
	const struct conf_flow *settings = conf_flow_find(in->conf, flow);
	r = mem_zalloc(sizeof *r);
	r->flow = mem_strdup(flow);
	r->weight = settings->weight;
	r->share = settings->share;
	list_init(&r->waiting);
	HASH_ADD_KEYPTR(hh, in->rows, r->flow, strlen(r->flow), r);
	return r;
}

static bool may_go(const struct model_inflow_row *r, int64_t nfree)
{
	return !list_empty(&r->waiting) && conf_below_share(r->held, r->share, nfree);
}

struct model_inflow_row *model_inflow_next(struct model_inflow *in, int64_t nfree)
{
	struct model_inflow_row *first = may_go(&in->none, nfree) ? &in->none : NULL;
	for (struct model_inflow_row *r = in->rows; r; r = r->hh.next)
		if (may_go(r, nfree) && (!first || r->start < first->start))
			first = r;
	return first;
}

bool model_inflow_spare(const struct model_inflow *in, int64_t nfree)
{
	return !in->rows || conf_below_share(in->held, conf_flow_find(in->conf, "*")->share, nfree);
}

void model_inflow_served(struct model_inflow *in, struct model_inflow_row *r)
{
	if (r->start < in->time)
		r->start = in->time;
	in->time = r->start;
	r->start += UNIT / (uint64_t)r->weight;
}

void model_inflow_hold(struct model_inflow *in, struct model_inflow_row *r)
{
	r->held++;
	in->held++;
}

void model_inflow_let_go(struct model_inflow *in, struct model_inflow_row *r)
{
	assert(r->held > 0 && in->held > 0);
	r->held--;
	in->held--;
}
