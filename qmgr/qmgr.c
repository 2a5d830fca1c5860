/* SPDX-License-Identifier: ISC */
#include "qmgr/qmgr.h"

#include "base/mem.h"
#include "qmgr/conn.h"
#include "qmgr/dest_command.h"
#include "qmgr/destdb_text.h"
#include "qmgr/explain.h"
#include "qmgr/message.h"
#include "qmgr/nexthop.h"
#include "qmgr/snapshot.h"
#include "qmgr/transport.h"

#include <assert.h>
#include <stdlib.h>

enum { QMGR_CONF = 400, QMGR_REST };

struct conf_note {
	struct note note;
	struct conf *conf;
};

static void give_credit(struct qmgr *q)
{
	int64_t more = q->conf->queue.message_active_limit - q->credit;
	if (more == 0)
		return;
	struct spool_credit *note = mem_zalloc(sizeof *note);
	note->note.type = SPOOL_CREDIT;
	note->n = more;
	q->credit += more;
	q->edges.to_spool(q->edges.context, &note->note);
}

static void reconfigure(struct qmgr *q, struct conf *conf)
{
	struct conf *old = q->conf;
	q->conf = conf;
	route_table_free(&q->routes);
	q->routes = route_table_new(conf);
	transports_configure(q, conf);
	/* Routes may lead elsewhere now: every next hop is asked for anew, under its new key. */
	struct nexthop *n, *tmp;
	HASH_ITER(hh, q->nexthops, n, tmp)
	n->fresh_until_ms = 0;
	struct site *s, *next;
	HASH_ITER(hh, q->sites, s, next)
	site_touch(s); /* its limits may be wider now */
	q->router_due = q->reader_due = true;
	conf_unref(old);
	give_credit(q);
}

static void receive(void *owner, struct note *note)
{
	struct qmgr *q = owner;
	switch (note->type) {
	case SPOOL_ARRIVAL:
		message_arrived(q, (struct spool_arrival *)note);
		break;
	case SPOOL_STORED:
		message_reported(q, (struct spool_store *)note);
		break;
	case SPOOL_COMMAND: { /* an order of our own has been done */
		struct spool_command *c = (struct spool_command *)note;
		spool_command_free(&c);
		break;
	}
	case SPOOL_UNPARK:
		site_called_back(q, (struct spool_unpark *)note);
		break;
	case SPOOL_CANCEL:
		message_cancel(q, ((struct spool_cancel *)note)->id,
			       ((struct spool_cancel *)note)->keep);
		free(note);
		break;
	case SPOOL_MOVED:
		message_moved(q, (struct spool_moved *)note);
		break;
	case RESOLVE_ANSWER:
		nexthop_answered((struct resolve *)note);
		break;
	case CONNECTION_SLOW:
		conn_on_slow((struct connection_slow *)note);
		break;
	case CONNECTION_READY:
		conn_on_ready((struct connection_ready *)note);
		break;
	case DELIVERY_BACK:
		conn_on_back(q, (struct delivery *)note);
		break;
	case CONNECTION_CLOSED:
		conn_on_closed(q, (struct connection_open *)note);
		break;
	case DEST_COMMAND:
		dest_execute(q, (struct dest_command *)note);
		break;
	case QMGR_EXPLAIN:
		scheduler_settle(q); /* nothing that can be done waits */
		explain_answer(q, (struct explain_question *)note);
		break;
	case QMGR_SNAPSHOT:
		snapshot_take(q, (struct snapshot *)note);
		break;
	case QMGR_REST:
		q->resting = true;
		free(note);
		break;
	case QMGR_CONF:
		reconfigure(q, ((struct conf_note *)note)->conf);
		free(note);
		break;
	default:
		assert(0 && "a note that qmgr does not know");
	}
}

static void received_all(void *owner)
{
	scheduler_settle(owner);
}

struct qmgr *qmgr_new(struct conf *conf)
{
	struct qmgr *q = mem_zalloc(sizeof *q);
	q->conf = conf_ref(conf);
	q->loop = loop_new("qmgr", receive, received_all, q);
	q->routes = route_table_new(conf);
	transports_count(conf);
	q->numbered = mem_zalloc((SPOOL_SITE_MAX + 1) * sizeof(struct site *));
	list_init(&q->dirty);
	list_init(&q->to_route);
	list_init(&q->starved);
	scheduler_seed(q);
	scheduler_start_collecting(q);
	return q;
}

void qmgr_wire(struct qmgr *q, const struct qmgr_edges *edges)
{
	q->edges = *edges;
	give_credit(q);
}

void qmgr_start(struct qmgr *q)
{
	loop_start(q->loop);
}

void qmgr_rest(struct qmgr *q)
{
	struct note *note = mem_zalloc(sizeof *note);
	note->type = QMGR_REST;
	loop_post(q->loop, note);
}

void qmgr_stop(struct qmgr *q)
{
	loop_stop(q->loop);
	/* Verdicts that the workers have posted meanwhile are still recorded. */
	mailbox_drain(&q->loop->mailbox);
}

void qmgr_recall(struct qmgr *q, const char *text)
{
	destdb_read(q, text);
}

void qmgr_learnt(struct qmgr *q, struct buf *to)
{
	destdb_write(q, to);
}

struct loop *qmgr_loop(struct qmgr *q)
{
	return q->loop;
}

void qmgr_seed(struct qmgr *q, uint64_t seed)
{
	assert(seed != 0);
	q->chance = seed;
}

void qmgr_bind_early(struct qmgr *q, void (*bind)(void *context, struct peer *))
{
	q->bind_early = bind;
}

void qmgr_reload(struct qmgr *q, struct conf *conf)
{
	struct conf_note *note = mem_zalloc(sizeof *note);
	note->note.type = QMGR_CONF;
	note->conf = conf_ref(conf);
	loop_post(q->loop, &note->note);
}

void qmgr_free(struct qmgr **qp)
{
	struct qmgr *q = *qp;
	if (!q)
		return;
	mailbox_drain(&q->loop->mailbox);
	scheduler_fini(q);
	loop_free(&q->loop);
	route_table_free(&q->routes);
	conf_unref(q->conf);
	free(q->numbered);
	free(q);
	*qp = NULL;
}
