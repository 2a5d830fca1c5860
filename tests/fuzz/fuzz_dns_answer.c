/* SPDX-License-Identifier: ISC */
/* What a name server sends. The first byte chooses the question, the rest is the reply. */
#include "tests/fuzz/fuzz.h"

#include "dns/answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const enum answer_type types[] = {ANSWER_A,     ANSWER_MX,   ANSWER_AAAA,
						 ANSWER_CNAME, ANSWER_TLSA, ANSWER_TXT};
	if (size == 0)
		return 0;
	struct answer *a = answer_parse(data + 1, size - 1, "a.test", types[data[0] % 6]);
	assert((a->status == ANSWER_RECORDS) == (a->nrecord > 0));
	assert((a->status == ANSWER_FAILED) == (a->why != NULL));
	assert((a->status == ANSWER_ALIAS) == (a->alias != NULL));
	assert(a->ttl_ms >= 0 && a->chased <= ANSWER_CHASE_MAX);
	for (int i = 0; i < a->nrecord; i++)
		for (const char *c = a->record[i].txt; c && *c; c++)
			assert(*c >= ' ' && *c <= '~');
	for (int i = 0; i < a->nrecord; i++)
		assert(!a->record[i].target || strlen(a->record[i].target) < 254);
	answer_unref(a);
	return 0;
}
