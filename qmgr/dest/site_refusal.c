/* SPDX-License-Identifier: ISC */
/* A host that greets with 5xx, or answers EHLO and HELO so, speaks of itself, not of the mail: the next
 * one is tried. When all have, that is said in so many words, and the transport may take it for a
 * refusal of the mail (greeting_5xx). One that can't carry mail with REQUIRETLS counts as one that refuses; where
 * there is one the mail is returned, as RFC 8689 4.2.1 wants. */
#include "qmgr/dest/site.h"

#include <stdio.h>

static bool all_refuse(const struct site *s)
{
	for (int i = 0; i < s->nhost; i++)
		if (!s->hosts[i].host->refuses || s->hosts[i].host->suspended ||
		    s->hosts[i].suspended)
			return false;
	return s->nhost > 0;
}

/* The latest refusal of its hosts; a reference. */
static struct verdict *last_word(const struct site *s)
{
	struct verdict *last = NULL;
	for (int i = 0; i < s->nhost; i++) {
		struct verdict *why = host_why(s->hosts[i].host, s->hosts[i].name);
		if (why && (!last || why->when_ms > last->when_ms)) {
			verdict_unref(last);
			last = verdict_ref(why);
		}
		verdict_unref(why);
	}
	return last;
}

static struct verdict *make_refusal(const struct verdict *said, enum verdict_class class)
{
	char text[VERDICT_TEXT_MAX + 8], dsn[sizeof said->dsn];
	snprintf(dsn, sizeof dsn, "%s", said->dsn);
	dsn[0] = class == VERDICT_FAILED ? '5' : '4';
	if (said->code == 0)
		return verdict_new(class, 0, dsn, said->host, said->text);
	snprintf(text, sizeof text, "all hosts refuse to talk: %d %s", said->code, said->text);
	return verdict_answering(VERDICT_AT_GREETING, class, 0, dsn, said->host, text);
}

static bool any_unfit(const struct site *s)
{
	for (int i = 0; i < s->nhost; i++)
		if (s->hosts[i].host->unfit)
			return true;
	return false;
}

struct verdict *site_refusal(const struct site *s, bool of_mail)
{
	bool bounces =
		s->queue.transport->settings->greeting_5xx == GREETING_5XX_BOUNCE || any_unfit(s);
	struct verdict *said = all_refuse(s) ? last_word(s) : NULL;
	if (!said)
		return NULL;
	struct verdict *v =
		make_refusal(said, of_mail && bounces ? VERDICT_FAILED : VERDICT_DEFERRED);
	verdict_unref(said);
	return v;
}
