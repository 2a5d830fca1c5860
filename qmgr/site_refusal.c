/* SPDX-License-Identifier: ISC */
/* What becomes of mail whose site has no host left to try. A host that greets with 5xx, or answers
 * EHLO and HELO so, speaks of itself, not of the mail: the next one is tried. When all have, that is
 * said in so many words, and the transport may take it for a refusal of the mail (greeting_5xx). */
#include "qmgr/site.h"

#include <stdio.h>

static bool all_refuse(const struct site *s)
{
	for (int i = 0; i < s->nhost; i++)
		if (!s->hosts[i].host->refuses || s->hosts[i].host->suspended)
			return false;
	return s->nhost > 0;
}

/* What the last of them said. */
static const struct verdict *last_word(const struct site *s)
{
	const struct verdict *last = NULL;
	for (int i = 0; i < s->nhost; i++) {
		const struct verdict *why = s->hosts[i].host->why;
		if (why && (!last || why->when_ms > last->when_ms))
			last = why;
	}
	return last;
}

static struct verdict *refusal(const struct verdict *said, enum verdict_class class)
{
	char dsn[sizeof said->dsn];
	snprintf(dsn, sizeof dsn, "%s", said->dsn);
	dsn[0] = class == VERDICT_FAILED ? '5' : '4';
	return verdict_printf(class, 0, dsn, said->host, "all hosts refuse to talk: %d %s",
			      said->code, said->text);
}

void site_fail_all(struct site *s)
{
	const struct verdict *said = all_refuse(s) ? last_word(s) : NULL;
	if (!said) {
		site_defer_all(s, s->last_failure);
		return;
	}
	verdict_unref(s->last_failure);
	s->last_failure = refusal(said, VERDICT_DEFERRED);
	if (s->transport->settings->greeting_5xx == GREETING_5XX_DEFER) {
		site_defer_all(s, s->last_failure);
		return;
	}
	struct verdict *failed = refusal(said, VERDICT_FAILED);
	site_defer_all(s, failed);
	verdict_unref(failed);
}
