/* SPDX-License-Identifier: ISC */
#include "smtpd/rcpt_pending.h"

#include "base/mem.h"

#include <stdlib.h>

void rcpt_pending_init(struct rcpt_pending *p, const struct mailaddr *to,
		       const struct rcpt_wanted *w)
{
	*p = (struct rcpt_pending){.to = *to, .wanted = *w};
	p->orcpt = w->orcpt ? mem_strdup(w->orcpt) : NULL;
	p->wanted.orcpt = p->orcpt;
	p->flow = w->flow ? mem_strdup(w->flow) : NULL;
	p->wanted.flow = p->flow;
}

void rcpt_pending_fini(struct rcpt_pending *p)
{
	free(p->orcpt);
	free(p->flow);
	free(p->asked);
	*p = (struct rcpt_pending){0};
}

struct rcpt_pending *rcpt_pending_new(const struct mailaddr *to, const struct rcpt_wanted *w)
{
	struct rcpt_pending *p = mem_zalloc(sizeof *p);
	rcpt_pending_init(p, to, w);
	return p;
}

void rcpt_pending_free(struct rcpt_pending **pp)
{
	if (*pp)
		rcpt_pending_fini(*pp);
	free(*pp);
	*pp = NULL;
}
