/* SPDX-License-Identifier: ISC */
#include "base/resolve.h"

#include "base/mem.h"

#include <stdlib.h>

struct resolve *resolve_new(enum resolve_kind kind, const char *name, struct loop *reply_to,
			    void *owner)
{
	struct resolve *r = mem_zalloc(sizeof *r);
	r->note.type = RESOLVE_ASK;
	r->kind = kind;
	r->name = mem_strdup(name);
	r->reply_to = reply_to;
	r->owner = owner;
	return r;
}

void resolve_free(struct resolve **rp)
{
	struct resolve *r = *rp;
	if (!r)
		return;
	for (int i = 0; i < r->nhost; i++)
		free(r->host[i].name);
	free(r->host);
	free(r->name);
	verdict_unref(r->failure);
	free(r);
	*rp = NULL;
}
