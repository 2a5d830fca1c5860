/* SPDX-License-Identifier: ISC */
#include "base/sts_ask.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>

struct sts_ask *sts_ask_new(const char *domain, struct loop *reply_to, void *owner)
{
	struct sts_ask *a = mailbox_note(sizeof *a, STS_ASK);
	a->domain = mem_strdup(domain);
	a->reply_to = reply_to;
	a->owner = owner;
	return a;
}

void sts_ask_free(struct sts_ask **ap)
{
	struct sts_ask *a = mem_take(ap);
	if (!a)
		return;
	sts_policy_unref(a->policy);
	free(a->domain);
	free(a->why);
	free(a);
}

const char *sts_outcome_word(enum sts_outcome outcome)
{
	static const char *const words[] = {
#define X(outcome, word, ...) [STS_##outcome] = word,
		STS_OUTCOMES(X)
#undef X
	};
	assert(outcome < sizeof words / sizeof words[0]);
	return words[outcome];
}
