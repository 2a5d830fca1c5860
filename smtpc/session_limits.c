/* SPDX-License-Identifier: ISC */
#include "smtpc/session_limits.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

void session_domains_fini(struct session_domains *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		free(s->name[i]);
	free(s->name);
	*s = (struct session_domains){0};
}

static bool is_known(const struct session_domains *s, const char *domain)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (strcasecmp(s->name[i], domain) == 0)
			return true;
	return false;
}

/* The domain of this address may be among those of the session; then it is. */
static bool domain_fits(struct session_domains *s, uint32_t most, const char *address)
{
	const char *at = strrchr(address, '@');
	const char *domain = at ? at + 1 : "";
	if (most == 0 || is_known(s, domain))
		return true;
	if (s->n >= most)
		return false;
	s->name = mem_realloc(s->name, (s->n + 1) * sizeof *s->name);
	s->name[s->n++] = mem_strdup(domain);
	return true;
}

/* Of two limits, where 0 is none. */
static uint32_t lesser_limit(uint32_t a, uint32_t b)
{
	return a == 0 || (b != 0 && b < a) ? b : a;
}

bool session_limits_fit(struct session_domains *s, const struct capability *can,
			struct transaction *t)
{
	uint32_t n = 0, most = lesser_limit(can->rcpt_max, t->delivery->rcpt_most);
	for (uint32_t i = 0; i < t->delivery->nrcpt; i++) {
		if (!transaction_waits(t, i))
			continue;
		if ((most == 0 || n < most) &&
		    domain_fits(s, can->domain_max, t->delivery->rcpt[i].address))
			n++;
		else
			transaction_postpone(t, i);
	}
	return n > 0;
}
