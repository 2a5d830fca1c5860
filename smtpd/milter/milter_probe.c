/* SPDX-License-Identifier: ISC */
#include "smtpd/milter/milter_probe.h"

#include "base/mem.h"
#include "smtpd/milter/milter_link.h"

#include <stdlib.h>

struct milter_probe {
	struct milters *milters;
	struct milter_link *link;
	struct conf_milter patient; /* as in the configuration, with our time for an answer */
	void (*done)(void *owner, const char *why);
	void *owner;
};

static bool hear_link(void *owner, enum milter_link_event event, const struct milter_answer *a)
{
	struct milter_probe *p = owner;
	(void)a;
	if (event == MILTER_LINK_READY)
		p->done(p->owner, NULL);
	else if (event == MILTER_LINK_FAILED)
		p->done(p->owner, p->link->why);
	return false;
}

struct milter_probe *milter_probe_begin(struct loop *loop, const struct conf_milter *c,
					void (*done)(void *owner, const char *why), void *owner)
{
	struct milter_probe *p = mem_zalloc(sizeof *p);
	p->milters = milters_new(loop);
	p->patient = *c;
	if (p->patient.timeout > MILTER_PROBE_MS)
		p->patient.timeout = MILTER_PROBE_MS;
	p->done = done;
	p->owner = owner;
	p->link = milter_link_get(p->milters, &p->patient, hear_link, p);
	return p;
}

void milter_probe_end(struct milter_probe **pp)
{
	struct milter_probe *p = mem_take(pp);
	if (!p)
		return;
	milter_link_drop(&p->link);
	milters_free(&p->milters);
	free(p);
}
