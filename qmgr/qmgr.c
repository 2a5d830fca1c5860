/* SPDX-License-Identifier: ISC */
#include "qmgr/qmgr.h"

#include "base/conf_note.h"
#include "base/mem.h"
#include "base/sharing.h"
#include "qmgr/delivery_event.h"
#include "qmgr/sched/flow_rate.h"
#include "qmgr/dest/conn.h"
#include "qmgr/dest/destdb_text.h"
#include "qmgr/dest/pooling.h"
#include "qmgr/dest/provider.h"
#include "qmgr/dest/source.h"
#include "qmgr/dest_command.h"
#include "qmgr/door.h"
#include "qmgr/explain.h"
#include "qmgr/flow_command.h"
#include "qmgr/flow_mail.h"
#include "qmgr/message.h"
#include "qmgr/router.h"
#include "qmgr/snapshot.h"
#include "qmgr/suppress_command.h"
#include "qmgr/qmgr_thread.h"

#include <assert.h>
#include <stdlib.h>

enum { QMGR_CONF = NOTES_FROM(NOTES_OF_QMGR_ITSELF), QMGR_REST };

static void give_credit(struct qmgr *q)
{
	int64_t more = q->sched.conf->queue.message_active_limit - q->credit;
	if (more == 0)
		return;
	struct spool_credit *note = mem_zalloc(sizeof *note);
	note->note.type = SPOOL_CREDIT;
	note->n = more;
	q->credit += more;
	assert(q->credit > 0);
	q->db.edges.to_spool(q->db.edges.context, &note->note);
}

/* The demands of domains are to be found out, or no more. */
static bool asks_otherwise(const struct conf_tls *before, const struct conf_tls *now)
{
	return before->dane != now->dane || before->mta_sts != now->mta_sts;
}

static void apply_conf(struct qmgr *q, struct conf *conf)
{
	struct conf *old = q->sched.conf;
	q->sched.conf = conf;
	route_table_free(&q->routes);
	q->routes = route_table_new(conf);
	transports_configure(&q->sched, conf);
	flows_configure(&q->sched);
	flow_rates_configure(&q->sched);
	message_set_ends(q);
	provider_configure(&q->db);
	source_configure(&q->db);
	verifier_keep_to_limit(q);
	q->db.reloads++;
	/* Routes may lead elsewhere now: every next hop is asked for anew, under its new key. */
	struct nexthop *n, *tmp;
	HASH_ITER(hh, q->nexthops, n, tmp)
	{
		n->fresh_until_ms = 0;
		if (asks_otherwise(&old->tls, &conf->tls))
			nexthop_forget_age(n);
		n->overtaken = n->lookup.asking > 0;
		n->lacks = false;
	}
	struct site *s, *next;
	HASH_ITER(hh, q->db.sites, s, next)
	site_configure(s);
	if (conf->authorities != old->authorities || conf->tls.minimum != old->tls.minimum)
		conns_end_proven(&q->db);
	conns_end_changed(&q->db);
	q->router_due = q->sched.reader_due = true;
	conf_unref(old);
	give_credit(q);
}

/* An order of our own has been done, or a list is there. */
static void take_answer(struct qmgr *q, struct spool_command *c)
{
	if (c->op == SPOOL_LIST)
		flow_mail_listed(q, c);
	else
		spool_command_free(&c);
}

static void take_called_back(struct qmgr *q, struct spool_unpark *note)
{
	if (note->site == SPOOL_SITE_NAMES)
		names_away_called_back(note);
	else
		site_called_back(&q->db, note);
}

/* False: it is not the spool's. */
static bool receive_of_spool(struct qmgr *q, struct note *note)
{
	switch (note->type) {
	case SPOOL_ARRIVAL:
		message_arrived(q, (struct spool_arrival *)note);
		return true;
	case SPOOL_STORED:
		message_reported(q, (struct spool_store *)note);
		return true;
	case SPOOL_COMMAND:
		take_answer(q, (struct spool_command *)note);
		return true;
	case SPOOL_UNPARK:
		take_called_back(q, (struct spool_unpark *)note);
		return true;
	case SPOOL_CANCEL:
		message_cancel(q, ((struct spool_cancel *)note)->id,
			       ((struct spool_cancel *)note)->keep);
		free(note);
		return true;
	case SPOOL_MOVED:
		message_moved(q, (struct spool_moved *)note);
		return true;
	default:
		return false;
	}
}

/* Of connections, and of other nodes, which see hosts too. False: it is neither. */
static bool receive_of_hosts(struct destdb *db, struct note *note)
{
	switch (note->type) {
	case CONNECTION_SLOW:
		conn_on_slow((struct connection_slow *)note);
		return true;
	case CONNECTION_READY:
		conn_on_ready((struct connection_ready *)note);
		return true;
	case DELIVERY_BACK:
		conn_on_back(db, (struct delivery *)note);
		return true;
	case CONNECTION_CLOSED:
		conn_on_closed(db, (struct connection_open *)note);
		return true;
	case FACT_HEARD:
		pooling_heard(db, (struct fact *)note);
		return true;
	case FACT_TELL:
		pooling_tell_all(db);
		free(note);
		return true;
	case FACT_LEAVE:
		pooling_leave(db, (struct fact_probe *)note);
		return true;
	case SHARING_WANT:
		if (!flow_rate_reserved(db->sched, (struct sharing_want *)note))
			site_reserved(db, (struct sharing_want *)note);
		return true;
	case SHARING_LEASED:
		leased_heard(db, (struct sharing_leased *)note);
		return true;
	default:
		return false;
	}
}

static void receive_note(void *owner, struct note *note)
{
	struct qmgr *q = owner;
	if (receive_of_spool(q, note) || receive_of_hosts(&q->db, note))
		return;
	switch (note->type) {
	case RESOLVE_ANSWER:
		if (((struct resolve *)note)->known)
			door_answered(q, (struct resolve *)note);
		else
			router_answered((struct resolve *)note);
		break;
	case STS_ANSWER:
		router_sts_answered((struct sts_ask *)note);
		break;
	case DEST_COMMAND:
		dest_execute(q, (struct dest_command *)note);
		break;
	case FLOW_COMMAND:
		flow_execute(q, (struct flow_command *)note);
		break;
	case VERIFY_ASK:
		door_ask(q, (struct verify *)note);
		break;
	case SUPPRESS_COMMAND:
		suppress_execute(q, (struct suppress_command *)note);
		break;
	case QMGR_EXPLAIN:
		qmgr_thread_settle(q); /* nothing that can be done waits */
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
		apply_conf(q, conf_note_take(note));
		break;
	default:
		assert(0 && "a note that qmgr does not know");
	}
}

static void received_all(void *owner)
{
	qmgr_thread_settle(owner);
	qmgr_thread_rest(owner);
}

struct qmgr *qmgr_new(struct conf *conf)
{
	struct qmgr *q = mem_zalloc(sizeof *q);
	qmgr_thread_init(q, conf_ref(conf), loop_new("qmgr", receive_note, received_all, q));
	q->routes = route_table_new(conf);
	transports_count(conf);
	return q;
}

static void share_for_scheduler(struct scheduler *sched, struct note *note)
{
	struct qmgr *q = (struct qmgr *)((char *)sched - offsetof(struct qmgr, sched));
	q->db.edges.to_cluster(q->db.edges.context, note);
}

void qmgr_wire(struct qmgr *q, const struct qmgr_edges *edges)
{
	assert(edges->workers > 0 && edges->to_spool && edges->to_dns && edges->to_worker);
	assert(!q->sched.loop->running);
	q->db.edges = *edges;
	q->sched.share = edges->to_cluster ? share_for_scheduler : NULL;
	give_credit(q);
}

void qmgr_start(struct qmgr *q)
{
	assert(q->db.edges.to_spool);
	loop_start(q->sched.loop);
}

void qmgr_rest(struct qmgr *q)
{
	struct note *note = mem_zalloc(sizeof *note);
	note->type = QMGR_REST;
	loop_post(q->sched.loop, note);
}

void qmgr_stop(struct qmgr *q)
{
	loop_stop(q->sched.loop);
	/* Verdicts that the workers have posted meanwhile are still recorded. */
	mailbox_drain(&q->sched.loop->mailbox);
	q->db.edges.to_cluster = NULL; /* what it still says is of no use */
	q->sched.share = NULL;
	door_close(&q->door);
	delivery_event_say_lost(q);
}

void qmgr_conclude(struct qmgr *q)
{
	assert(!q->sched.loop->running);
	q->concludes = true;
	mailbox_drain(&q->sched.loop->mailbox);
}

void qmgr_recall(struct qmgr *q, const char *text)
{
	assert(loop_is_ours(q->sched.loop));
	assert(!q->sched.loop->running && !q->messages);
	destdb_read(&q->db, text);
}

void qmgr_learnt(struct qmgr *q, struct buf *to)
{
	assert(loop_is_ours(q->sched.loop));
	assert(!q->sched.loop->running);
	destdb_write(&q->db, to);
}

void qmgr_recall_suppressed(struct qmgr *q, const char *text)
{
	assert(!q->sched.loop->running);
	suppressed_read(&q->suppressed, text);
}

void qmgr_suppressed(struct qmgr *q, struct buf *to)
{
	assert(!q->sched.loop->running);
	suppressed_write(&q->suppressed, to);
}

void qmgr_recall_flows(struct qmgr *q, const char *text)
{
	assert(!q->sched.loop->running);
	flow_tallies_read(&q->tallies, text);
}

void qmgr_flows(struct qmgr *q, struct buf *to)
{
	assert(!q->sched.loop->running);
	flow_tallies_write(&q->tallies, to);
}

struct loop *qmgr_loop(struct qmgr *q)
{
	return q->sched.loop;
}

void qmgr_seed(struct qmgr *q, uint64_t seed)
{
	assert(seed != 0);
	assert(!q->messages);
	q->sched.chance = seed;
}

void qmgr_bind_early(struct qmgr *q, void (*bind)(void *context, struct peer *))
{
	assert(bind);
	q->db.bind_early = bind;
}

void qmgr_reload(struct qmgr *q, struct conf *conf)
{
	conf_note_post(q->sched.loop, QMGR_CONF, conf);
}

void qmgr_free(struct qmgr **qp)
{
	struct qmgr *q = *qp;
	if (!q)
		return;
	assert(!q->sched.loop->running);
	mailbox_drain(&q->sched.loop->mailbox);
	qmgr_thread_fini(q);
	loop_free(&q->sched.loop);
	route_table_free(&q->routes);
	conf_unref(q->sched.conf);
	free(q);
	*qp = NULL;
}
