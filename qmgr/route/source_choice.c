/* SPDX-License-Identifier: ISC */
#include "qmgr/route/source_choice.h"

#include "base/keyed_hash.h"
#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DAY_MS = 86400000 };

/* Between 0 and 1, and neither; the same in every process. */
static double draw_number(const char *flow, int64_t day, const char *source)
{
	static const uint64_t key[2] = {0x736f757263652061, 0x6e642061206461};
	char *text = mem_printf("%s %" PRId64 " %s", flow, day, source);
	uint64_t hash = keyed_hash_with(key, text, strlen(text));
	free(text);
	return ((double)(hash >> 11) + 0.5) / 9007199254740992.0; /* 2^53 */
}

/* -ln of a draw is exponential with rate 1; divided by the weight it is the least as often as the weight is of their sum. */
static double lateness_of(const struct conf_use *u, const char *flow, int64_t day)
{
	return -log(draw_number(flow, day, u->source->title)) / (double)u->weight;
}

const struct conf_source *source_choose(const struct conf_uses *uses, const char *flow,
					int64_t date_ms,
					bool (*fits)(void *context, const struct conf_source *),
					void *context)
{
	const struct conf_source *first = NULL;
	double least = 0;
	for (int i = 0; i < uses->n; i++) {
		double is = lateness_of(&uses->of[i], flow, date_ms / DAY_MS);
		if (first && is >= least)
			continue;
		if (fits && !fits(context, uses->of[i].source))
			continue;
		first = uses->of[i].source;
		least = is;
	}
	return first;
}

const struct conf_uses *source_uses(const struct conf *c, const struct conf_transport *t,
				    const char *flow)
{
	if (c->flows_have_sources) {
		const struct conf_flow *f = conf_flow_find(c, flow);
		if (f->uses.n > 0)
			return &f->uses;
	}
	return &t->uses;
}
