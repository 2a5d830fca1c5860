/* SPDX-License-Identifier: ISC */
#include "base/resolve.h"

#include "base/mem.h"
#include "base/tls_dane.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct resolve *resolve_new(enum resolve_kind kind, const char *name, struct loop *reply_to,
			    void *owner)
{
	assert(kind <= RESOLVE_TXT);
	struct resolve *r = mailbox_note(sizeof *r, RESOLVE_ASK);
	r->kind = kind;
	r->name = mem_strdup(name);
	r->reply_to = reply_to;
	r->owner = owner;
	return r;
}

void resolve_host_fini(struct resolve_host *h)
{
	free(h->name);
	free(h->canonical);
	tls_dane_unref(h->dane);
	verdict_unref(h->unsure);
}

void resolve_drop_host(struct resolve *r, int host)
{
	assert(host >= 0 && host < r->nhost);
	resolve_host_fini(&r->host[host]);
	r->nhost--;
	memmove(&r->host[host], &r->host[host + 1], (size_t)(r->nhost - host) * sizeof *r->host);
}

void resolve_free(struct resolve **rp)
{
	struct resolve *r = mem_take(rp);
	if (!r)
		return;
	for (int i = 0; i < r->nhost; i++)
		resolve_host_fini(&r->host[i]);
	free(r->host);
	for (int i = 0; i < r->ntlsa; i++)
		free(r->tlsa[i].data);
	free(r->tlsa);
	for (int i = 0; i < r->ntxt; i++)
		free(r->txt[i]);
	free(r->txt);
	free(r->alias);
	free(r->name);
	verdict_unref(r->failure);
	free(r);
}

enum resolve_security resolve_weaker(enum resolve_security a, enum resolve_security b)
{
	assert(a != RESOLVE_BOGUS && b != RESOLVE_BOGUS);
	return a < b ? a : b;
}

const char *resolve_security_text(enum resolve_security s)
{
	static const char *const texts[] = {
		[RESOLVE_INDETERMINATE] = "indeterminate",
		[RESOLVE_INSECURE] = "insecure",
		[RESOLVE_SECURE] = "secure",
		[RESOLVE_BOGUS] = "bogus",
	};
	assert(s < sizeof texts / sizeof texts[0]);
	return texts[s];
}
