/* SPDX-License-Identifier: ISC */
#include "qmgr/explain.h"

#include "base/mem.h"
#include "qmgr/qmgr.h"

#include <stdlib.h>

struct explain_question *explain_question_new(uint64_t id, const char *site, struct loop *reply_to,
					      void *owner)
{
	struct explain_question *x = mem_zalloc(sizeof *x);
	x->note.type = QMGR_EXPLAIN;
	x->id = id;
	x->site = site ? mem_strdup(site) : NULL;
	x->reply_to = reply_to;
	x->owner = owner;
	return x;
}

struct explain_question *explain_question_of_queued(uint16_t number, const char *domain,
						    struct loop *reply_to, void *owner)
{
	struct explain_question *x = explain_question_new(0, NULL, reply_to, owner);
	x->number = number;
	x->domain = mem_strdup(domain);
	return x;
}

void explain_question_free(struct explain_question **xp)
{
	struct explain_question *x = *xp;
	if (!x)
		return;
	for (int i = 0; i < x->nrow; i++) {
		free(x->row[i].site);
		free(x->row[i].key);
		free(x->row[i].transport);
		free(x->row[i].provider);
		free(x->row[i].source);
		free(x->row[i].login_hop);
		free(x->row[i].resume);
		verdict_unref(x->row[i].last);
	}
	free(x->row);
	free(x->site);
	free(x->domain);
	free(x->flow);
	free(x);
	*xp = NULL;
}
