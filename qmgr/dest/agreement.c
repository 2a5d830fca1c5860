/* SPDX-License-Identifier: ISC */
#include "qmgr/dest/agreement.h"

#include "base/keyed_hash.h"
#include "base/reason.h"

#include <assert.h>
#include <string.h>

void agreement_taken(struct agreement *a)
{
	a->n = 0;
}

static bool may_speak_of_host(const struct verdict *v)
{
	enum reason r = reason_of(v);
	bool of_content = v->stage == VERDICT_AT_DATA || v->stage == VERDICT_AT_END;
	if (r == REASON_SYSTEM || r == REASON_CONNECTION || r == REASON_DNS)
		return of_content || (v->stage == VERDICT_AT_RCPT && strcmp(v->dsn, "4.0.0") != 0);
	return of_content && (r == REASON_OTHER || r == REASON_PROTOCOL);
}

static bool has_enough_different(const unsigned of[AGREEMENT_OF])
{
	int found = 0;
	for (int i = 0; i < AGREEMENT_OF; i++) {
		bool first = true;
		for (int k = 0; k < i; k++)
			first &= of[k] != of[i];
		found += first;
	}
	return found >= AGREEMENT_DIFFERENT;
}

bool agreement_refused(struct agreement *a, const char *sender, const char *recipient,
		       const struct verdict *v)
{
	if (!may_speak_of_host(v))
		return false;
	assert(a->n < 2 * AGREEMENT_OF);
	int at = a->n % AGREEMENT_OF;
	a->sender[at] = (unsigned)keyed_hash(sender, strlen(sender));
	a->recipient[at] = (unsigned)keyed_hash(recipient, strlen(recipient));
	a->n = a->n + 1 < 2 * AGREEMENT_OF ? a->n + 1 : a->n + 1 - AGREEMENT_OF;
	return a->n >= AGREEMENT_OF && has_enough_different(a->sender) &&
	       has_enough_different(a->recipient);
}
