/* SPDX-License-Identifier: ISC */
/* queue_refilter - release by way of the filters: each message is shown to us, passes them, and is then
 * released, or deleted, or left where it is. So many are on their way at a time, whoever of them is slow. */
#include "cmd/control/queue_job.h"

#include "base/ident.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/maildrop/refilter.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

const char *queue_refilter_refused(const struct queue_job *j)
{
	if (!j->maildrop)
		return "only the running relay can ask filters";
	if (j->conf->nmilter == 0)
		return "no filter is configured, which --refilter would ask";
	return j->conf->nmilter > CONF_MILTERS_MAX ? "too many filters are configured" : NULL;
}

void queue_refilter_add(struct queue_job *j, uint64_t id)
{
	if (j->refilter.next == j->refilter.n)
		j->refilter.next = j->refilter.n = 0;
	if (j->refilter.n == j->refilter.cap) {
		j->refilter.cap = j->refilter.cap ? j->refilter.cap * 2 : QUEUE_PAGE;
		j->refilter.id = mem_realloc(j->refilter.id,
					     (size_t)j->refilter.cap * sizeof *j->refilter.id);
	}
	j->refilter.id[j->refilter.n++] = id;
}

bool queue_refilter_next(struct queue_job *j, uint64_t *id)
{
	if (j->in_flight >= REFILTER_AT_ONCE || j->refilter.next == j->refilter.n)
		return false;
	*id = j->refilter.id[j->refilter.next++];
	return true;
}

enum spool_unmoved queue_refilter_shown(struct queue_job *j, struct spool_command *c)
{
	if (c->nrow == 0)
		return c->error ? SPOOL_STUCK : SPOOL_MISSING;
	struct spool_row *row = &c->row[0];
	if (row->queue != SPOOL_HOLD)
		return SPOOL_NOT_HELD;
	if (!row->content)
		return SPOOL_STUCK;
	struct refilter *r = refilter_new(j->loop, j);
	r->envelope = row->envelope;
	r->content = row->content;
	r->generation = row->generation;
	r->fresh = j->args.fresh;
	row->envelope = NULL;
	row->content = NULL;
	j->in_flight++;
	maildrop_refilter(j->maildrop, r);
	return SPOOL_UNMOVED;
}

static void say_replaced(struct queue_job *j, const struct refilter *r)
{
	assert(r->as);
	struct buf text = {0};
	char was[IDENT_TEXT], is[IDENT_TEXT];
	buf_printf(&text, "%s: changed by filters, and released as %s\n",
		   ident_text(r->envelope->id, was), ident_text(r->as, is));
	control_say(j->request, buf_data(&text), buf_len(&text));
	buf_fini(&text);
}

enum spool_order queue_refilter_answered(struct queue_job *j, const struct refilter *r)
{
	char id[IDENT_TEXT];
	ident_text(r->envelope->id, id);
	switch (r->end) {
	case REFILTER_PASSED:
		return SPOOL_RESUME;
	case REFILTER_REPLACED:
		j->messages++;
		say_replaced(j, r);
		return SPOOL_SHOW;
	case REFILTER_DISCARDED:
		assert(r->says);
		control_complain(j->request, "sluice: %s: deleted: %s\n", id, r->says);
		return SPOOL_DELETE;
	case REFILTER_HELD:
		break;
	}
	assert(r->says);
	control_complain(j->request, "sluice: %s: still on hold: %s\n", id, r->says);
	j->refilter.held++;
	j->status = STATUS_REFUSED;
	return SPOOL_SHOW;
}

void queue_refilter_total(const struct queue_job *j, struct buf *to)
{
	if (j->refilter.deleted > 0)
		buf_printf(to, "%" PRId64 " deleted, as filters want it\n", j->refilter.deleted);
	if (j->refilter.held > 0)
		buf_printf(to, "%" PRId64 " still on hold\n", j->refilter.held);
}
