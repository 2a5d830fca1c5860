/* SPDX-License-Identifier: ISC */
#include "sim/tally_nodes.h"

#include "sim/tally.h"

#include <assert.h>
#include <math.h>

const char *redis_op_name(enum redis_op op)
{
	assert(op < REDIS_OP_COUNT);
	static const char *const name[] = {
#define X(kind, text) text,
		REDIS_OPS(X)
#undef X
	};
	return name[op];
}

int64_t tally_ops(const struct tally_nodes *t)
{
	int64_t n = 0;
	for (int i = 0; i < REDIS_OP_COUNT; i++)
		n += t->ops[i];
	return n;
}

double tally_seconds(const struct tally *t)
{
	double s = (double)(t->ended_ms - t->nodes.began_ms) / 1000;
	return s > 0 ? s : 1;
}

double tally_busy(const struct tally *t)
{
	double us = 0;
	for (int i = 0; i < REDIS_OP_COUNT; i++)
		us += t->nodes.busy_us[i];
	return us / 1e6 / tally_seconds(t);
}

double tally_messages(const struct tally *t)
{
	return (double)(t->done - t->nodes.done_before);
}

double tally_over(const struct tally_nodes *t)
{
	double worst = 0;
	for (int i = 0; i < t->nhost; i++) {
		const struct tally_host *h = &t->host[i];
		double over = h->limit > 0 ? (double)(h->most - h->limit) / (double)h->limit : 0;
		worst = over > worst ? over : worst;
	}
	return worst;
}

double tally_used(const struct tally_nodes *t)
{
	double sum = 0;
	int64_t n = 0;
	for (int i = 0; i < t->nhost; i++) {
		const struct tally_host *h = &t->host[i];
		if (h->limit == 0 || h->samples == 0 || !h->own)
			continue;
		sum += h->open / (double)(h->samples * h->limit);
		n++;
	}
	return n ? sum / (double)n : 0;
}

void tally_rates(const struct tally *t, double *mean, double *worst)
{
	double sum = 0, of = 0;
	*worst = 0;
	for (const struct tally_site *s = t->sites; s; s = s->hh.next) {
		double wanted = s->rate * TALLY_WINDOW_US / 1e6;
		for (int64_t i = 0; wanted > 0 && i < s->windows.n; i++) {
			double error = (double)s->windows.value[i] / wanted - 1;
			sum += error;
			of++;
			*worst = fabs(error) > fabs(*worst) ? error : *worst;
		}
	}
	*mean = of > 0 ? sum / of : 0;
}
