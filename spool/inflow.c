/* SPDX-License-Identifier: ISC */
#include "spool/inflow.h"

#include "base/keyed_hash.h"

#include <assert.h>
#include <string.h>

enum { PERCENT = 100, RESERVE = 10 }; /* of the places */

#define UNIT (UINT64_C(1) << 20)

void inflow_init(struct inflow *in)
{
	for (int i = 0; i <= INFLOW_ROWS; i++) {
		in->row[i].weight = 1;
		in->row[i].share = PERCENT - RESERVE;
		atomic_init(&in->behind[i], false);
	}
}

void inflow_fini(struct inflow *in)
{
	for (int i = 0; i <= INFLOW_ROWS; i++)
		due_fini(&in->row[i].waiting);
}

void inflow_shrink(struct inflow *in)
{
	for (int i = 0; i <= INFLOW_ROWS; i++)
		due_shrink(&in->row[i].waiting);
}

uint16_t inflow_row_of(const char *flow)
{
	return (uint16_t)(1 + keyed_hash(flow, strlen(flow)) % INFLOW_ROWS);
}

void inflow_know(struct inflow *in, uint16_t row, const struct conf_flow *conf)
{
	assert(row <= INFLOW_ROWS);
	assert(conf->weight > 0);
	in->row[row].weight = conf->weight;
	in->row[row].share = conf->share;
}

static void enter_busy(struct inflow *in, uint16_t number)
{
	struct inflow_row *row = &in->row[number];
	assert(!row->busy && in->nbusy <= INFLOW_ROWS);
	in->busy[in->nbusy] = number;
	row->busy = ++in->nbusy;
	if (row->start < in->time)
		row->start = in->time;
}

static void leave_busy(struct inflow *in, uint16_t number)
{
	struct inflow_row *row = &in->row[number];
	assert(in->nbusy > 0 && in->busy[row->busy - 1] == number);
	assert(row->busy <= in->nbusy && row->waiting.n == 0);
	uint16_t last = in->busy[--in->nbusy];
	in->busy[row->busy - 1] = last;
	in->row[last].busy = row->busy;
	row->busy = 0;
	atomic_store(&in->behind[number], false);
}

void inflow_add(struct inflow *in, struct stub *stub)
{
	assert(stub->site <= INFLOW_ROWS); /* and not a site's number */
	struct inflow_row *row = &in->row[stub->site];
	due_add(&row->waiting, stub);
	in->n++;
	if (!row->busy)
		enter_busy(in, stub->site);
}

void inflow_remove(struct inflow *in, struct stub *stub)
{
	struct inflow_row *row = &in->row[stub->site];
	assert(row->busy);
	assert(in->n > 0);
	due_remove(&row->waiting, stub);
	in->n--;
	if (row->waiting.n == 0)
		leave_busy(in, stub->site);
	stub->site = 0;
}

bool inflow_may(const struct inflow *in, uint16_t row, int64_t nfree)
{
	assert(row <= INFLOW_ROWS);
	return conf_below_share(in->row[row].held, in->row[row].share, nfree);
}

bool inflow_spare(const struct inflow *in, int64_t nfree)
{
	return conf_below_share(in->held, in->row[0].share, nfree);
}

static bool comes_before(const struct inflow_row *a, const struct inflow_row *b)
{
	return a->start != b->start ? a->start < b->start
				    : due_first(&a->waiting)->id < due_first(&b->waiting)->id;
}

struct stub *inflow_first(const struct inflow *in, int64_t nfree)
{
	const struct inflow_row *first = NULL;
	for (uint32_t i = 0; i < in->nbusy; i++) {
		const struct inflow_row *row = &in->row[in->busy[i]];
		if (inflow_may(in, in->busy[i], nfree) && (!first || comes_before(row, first)))
			first = row;
	}
	return first ? due_first(&first->waiting) : NULL;
}

void inflow_served(struct inflow *in, uint16_t number)
{
	struct inflow_row *row = &in->row[number];
	assert(row->busy);
	assert(number <= INFLOW_ROWS && row->weight > 0);
	if (row->start < in->time)
		row->start =
			in->time; /* it had its share meanwhile, and owes nobody, nor is it owed */
	in->time = row->start;
	row->start += UNIT / (uint64_t)row->weight;
}

void inflow_hold(struct inflow *in, uint16_t number)
{
	assert(number <= INFLOW_ROWS);
	struct inflow_row *row = &in->row[number];
	in->nholding += row->held++ == 0;
	in->held++;
}

void inflow_let_go(struct inflow *in, uint16_t number)
{
	struct inflow_row *row = &in->row[number];
	assert(number <= INFLOW_ROWS);
	assert(row->held > 0);
	assert(in->held >= row->held);
	assert(in->nholding > 0);
	in->held--;
	in->nholding -= --row->held == 0;
}

void inflow_tell(struct inflow *in, int64_t nfree)
{
	for (uint32_t i = 0; i < in->nbusy; i++) {
		const struct inflow_row *row = &in->row[in->busy[i]];
		if (!inflow_may(in, in->busy[i], nfree) && row->held * in->nholding >= in->held)
			atomic_store_explicit(&in->behind[in->busy[i]], true, memory_order_relaxed);
	}
}

bool inflow_behind(const struct inflow *in, const char *flow)
{
	return atomic_load_explicit(&in->behind[inflow_row_of(flow)], memory_order_relaxed);
}
