/* SPDX-License-Identifier: ISC */
#include "replica/node_core.h"

#include "base/clock.h"
#include "base/condition.h"
#include "base/conf_note.h"
#include "base/fence.h"
#include "base/ident.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "replica/harvest.h"
#include "replica/replica.h"
#include "replica/transfer.h"
#include "spool/adoption.h"
#include "spool/spool.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	DRAIN_TRIES = 3,
	TELL_MS = 10000, /* nothing is begun after it that tells the others */
	WAIT_LEAST_MS = 250,
	WAIT_MOST_MS = 5000,
	START_MS = 3000,
	IDS_US = 1000000, /* of ids that may be given until the row is written again */
	START_LOOK_MS = 10
};

void node_say(const char *of, const char *state, uint64_t epoch, const char *reason)
{
	log_event(LOG_LEVEL_INFO, "node", "node", of, "state", state, "epoch",
		  log_number((int64_t)epoch), "reason", reason, NULL);
}

struct node_order *node_order_new(enum node_op op, const char *name, struct loop *reply_to,
				  void *owner)
{
	struct node_order *o = mailbox_note(sizeof *o, NODE_ORDER);
	assert(name || op == NODE_MAY_DRAIN);
	o->op = op;
	o->name = mem_strdup(name);
	o->reply_to = reply_to;
	o->owner = owner;
	return o;
}

void node_order_free(struct node_order **op)
{
	struct node_order *o = mem_take(op);
	if (!o)
		return;
	buf_fini(&o->says);
	free(o->name);
	free(o);
}

/* That there is no answer may be because it was denied, which the server says in a message of its own. */
static const char *why_not(const struct node *n, natsStatus s)
{
	if (s != NATS_TIMEOUT)
		return nats_setup_text(s);
	return n->denied ? n->denied
			 : "JetStream does not answer: NATS hangs, has no leader, or its disk was "
			   "full, after which it is to be started again";
}

static void forget_denial(struct node *n)
{
	mem_free(&n->denied);
}

/* The same may come again, and is said again. */
static void forget_reason(struct node *n)
{
	mem_free(&n->reason);
}

/* Once for each reason, since it is asked again and again. */
static void wait_for(struct node *n, const char *reason)
{
	const bool told = n->reason && strcmp(n->reason, reason) == 0;
	if (told || atomic_load(&n->interrupt)) /* what fails then was not asked */
		return;
	forget_reason(n);
	n->reason = mem_strdup(reason);
	if (n->state != NODE_UP)
		condition_set(CONDITION_node_waits, "", reason);
	log_event(LOG_LEVEL_WARNING, "node", "node", n->name, "state",
		  n->state == NODE_UP ? "up" : "waiting", "epoch",
		  log_number((int64_t)n->row.epoch), "reason", reason, NULL);
}

static void lose_epoch(struct node *n, const char *reason)
{
	assert(n->state != NODE_GONE);
	fence_set(0);
	if (n->state == NODE_UP)
		metrics_add(METRIC_node_up, -1);
	n->state = NODE_GONE;
	condition_set(CONDITION_node_waits, "", reason);
	log_event(LOG_LEVEL_ERROR, "node", "node", n->name, "state", "fenced", "epoch",
		  log_number((int64_t)n->row.epoch), "reason", reason, NULL);
	loop_post(n->main, mailbox_note(sizeof(struct note), NODE_LOST));
}

/* A number is for ever a node's, whatever becomes of its disk and clock. What it had given is not known by its queue: what came
 * of these may lie at another node by now, under that id. */
static uint64_t reserve_ids(void)
{
	return (ident_new() >> IDENT_TIME_SHIFT) + IDS_US;
}

static struct replica_epoch row_for(const struct node *n, const struct roster_row *before)
{
	struct replica_epoch e = {.state = REPLICA_UP,
				  .epoch = n->own.epoch,
				  .seen_ms = clock_wall_ms(),
				  .lease_ms = epoch_lease_ms(n->conf->cluster.adopt_after),
				  .life = n->own.life,
				  .ids_us = reserve_ids(),
				  .number = before ? before->is.number : 0};
	/* Where the bucket has lost its rows, so much counts as there is. */
	if (before)
		e.since = before->is.life == e.life ? before->is.since : before->is.epoch + 1;
	assert(strlen(n->name) < sizeof e.by);
	memcpy(e.by, n->name, strlen(n->name));
	return e;
}

/* The spool looks at the fence when it looks at anything. */
static void wake_spool(struct node *n)
{
	struct spool_credit *c = mailbox_note(sizeof *c, SPOOL_CREDIT);
	spool_post(n->spool, &c->note);
}

static void begin_epoch(struct node *n, const struct replica_epoch *row, uint64_t revision,
			int64_t asked_ms)
{
	assert(n->state == NODE_WAITING);
	assert(row->epoch == n->own.epoch && row->life == n->own.life);
	n->row = *row;
	n->revision = revision;
	n->state = NODE_UP;
	forget_reason(n);
	ident_set_node(row->number);
	forget_denial(n);
	metrics_add(METRIC_node_up, 1);
	condition_clear(CONDITION_node_waits, "");
	fence_set(epoch_fence_ms(asked_ms, row->lease_ms));
	replica_begin(n->replica, &n->own, row);
	wake_spool(n);
	node_say(n->name, "up", row->epoch, "it has taken this epoch");
}

/* Before it is taken: so a folder whose epoch is older than its row's is not the one that has taken that. */
static bool note_epoch(struct node *n, const struct roster_row *before)
{
	if (n->noted > (before ? before->is.epoch : 0))
		return true; /* it was not taken then */
	if (n->own.epoch < n->behind)
		n->own.epoch = n->behind;
	struct epoch_own own = n->own;
	own.epoch = epoch_next(before ? &before->is : NULL, &n->own);
	own.beat = 0;
	own.bond = EPOCH_MEMBER;
	if (!life_write(n->conf->spool, &own))
		return false;
	n->own = own;
	n->noted = own.epoch;
	return true;
}

static void take_epoch(struct node *n, const struct roster_row *before)
{
	if (!note_epoch(n, before)) {
		wait_for(n, log_text("%s/node: %s", n->conf->spool, strerror(errno)));
		return;
	}
	if (before)
		ident_floor(before->is.ids_us << IDENT_TIME_SHIFT);
	struct replica_epoch row = row_for(n, before);
	int64_t asked_ms = clock_up_ms();
	uint64_t revision;
	natsStatus s = before ? NATS_OK : roster_number(&n->roster, n->name, &row.number);
	if (s == NATS_OK)
		s = roster_write(&n->roster, n->name, &row, before ? before->seen.revision : 0,
				 &revision);
	if (s == NATS_OK)
		begin_epoch(n, &row, revision, asked_ms);
	else
		wait_for(n, why_not(n, s));
}

static void end_life(struct node *n)
{
	if (life_end(n->conf->spool))
		lose_epoch(n, "another node has adopted its queue");
	else
		wait_for(n, strerror(errno));
}

/* The mail that the stream has of a former life was adopted. */
static natsStatus look_behind(struct node *n, const struct roster_row *row)
{
	uint64_t epoch = 0;
	uint32_t beat = 0;
	n->behind = 0;
	if (row && row->is.life != n->own.life)
		return NATS_OK;
	natsStatus s = nats_setup_last(&n->nats, &epoch, &beat);
	if (s == NATS_OK && epoch_is_behind(&n->own, epoch, beat))
		n->behind = epoch;
	return s;
}

static void doubt_own_folder(struct node *n)
{
	n->doubts = true;
	wait_for(n, "what NATS has of this queue is later than this folder, or another's: is it "
		    "from a backup, or a copy? It waits for \"sluice node adopt\", see CLUSTER "
		    "in sluice(8)");
}

/* Whoever started before, or was told which is right, is not asked again. */
static enum epoch_start judge_start(struct node *n, const struct roster_row *row, natsStatus *s)
{
	enum epoch_start start = epoch_start(row ? &row->is : NULL, &n->own);
	*s = NATS_OK;
	if (start == EPOCH_TAKE && n->noted == 0 && !n->insists)
		*s = look_behind(n, row);
	if (start == EPOCH_TAKE && n->behind > 0)
		start = EPOCH_DOUBT;
	return start == EPOCH_DOUBT && n->insists ? EPOCH_TAKE : start;
}

bool node_row_is_right(struct node *n, const char *of, const struct roster_row *row)
{
	struct replica_epoch claim;
	bool there;
	assert(loop_is_ours(n->loop));
	if (nats_setup_claim(&n->nats, of, &claim, &there) != NATS_OK)
		return false;
	if (!there || (row && !epoch_is_later(&claim, &row->is)))
		return true;
	log_event(LOG_LEVEL_ERROR, "node", "node", of, "state", replica_state_name(claim.state),
		  "epoch", log_number((int64_t)claim.epoch), "reason",
		  "the bucket has lost this: its row is written again, as the stream has it", NULL);
	claim.seen_ms = 0; /* by whose clock, and when, nobody knows any more */
	roster_write(&n->roster, of, &claim, row ? row->seen.revision : 0, NULL);
	return false;
}

/* Mail that a node has taken since it left is nobody else's, and goes on under another name. */
static void leave_name(struct node *n, bool left)
{
	if (left && !life_write(n->conf->spool, &n->own))
		wait_for(n, log_text("%s/node: %s", n->conf->spool, strerror(errno)));
	else
		wait_for(n, "this name is retired: set another one in cluster { name }");
}

static void try_to_start(struct node *n)
{
	struct roster_row *row = roster_find(&n->roster, n->name);
	natsStatus s;
	if (!node_row_is_right(n, n->name, row))
		return;
	bool left = epoch_is_left(row ? &row->is : NULL, &n->own);
	if (left)
		life_begin(&n->own);
	enum epoch_start start = judge_start(n, row, &s);
	n->doubts = false;
	if (s != NATS_OK) {
		wait_for(n, why_not(n, s));
		return;
	}
	switch (start) {
	case EPOCH_TAKE:
		take_epoch(n, row);
		break;
	case EPOCH_DOUBT:
		doubt_own_folder(n);
		break;
	case EPOCH_WAIT:
		wait_for(n, "the queue that this name had, in another folder, is not adopted yet; "
			    "where all nodes wait so, start one under another name");
		break;
	case EPOCH_PAST:
		end_life(n);
		break;
	case EPOCH_NEVER:
		leave_name(n, left);
		break;
	}
}

/* The row as it is in the bucket says whether an unanswered write of ours was done. Only one that says so puts
 * the queue aside: that can't be taken back, and what is restored, cloned or written by hand says something else. */
static void judge_own_row(struct node *n)
{
	const struct roster_row *row = roster_find(&n->roster, n->name);
	if (!row) {
		wait_for(n, "the bucket has no row of this node: it is written again");
		n->revision = 0;
		return;
	}
	switch (epoch_row(&row->is, row->seen.revision, &n->row, n->revision)) {
	case EPOCH_OLDER:
		wait_for(n, "the bucket has lost its row: it is written again");
		n->revision = row->seen.revision;
		break;
	case EPOCH_HOLDS:
		n->revision = row->seen.revision;
		forget_reason(n);
		break;
	case EPOCH_TAKEN:
		end_life(n);
		break;
	case EPOCH_STRANGE:
		lose_epoch(n, "its row is another's, who has not adopted its queue: a copy of this "
			      "node?");
		break;
	}
}

static void renew_epoch(struct node *n)
{
	assert(n->state == NODE_UP && n->row.state == REPLICA_UP);
	int64_t asked_ms = clock_up_ms();
	n->row.seen_ms = clock_wall_ms();
	n->row.ids_us = reserve_ids();
	natsStatus s = roster_write(&n->roster, n->name, &n->row, n->revision, &n->revision);
	if (s == NATS_OK)
		fence_set(epoch_fence_ms(asked_ms, n->row.lease_ms));
	else
		metrics_add(METRIC_node_renewals_failed, 1);
}

static void post_denial(void *owner, const char *what)
{
	struct node *n = owner;
	struct node_denial *d = mailbox_note(sizeof *d, NODE_DENIED);
	snprintf(d->what, sizeof d->what, "%s", what);
	loop_post(n->loop, &d->note);
}

static void hear_denial(struct node *n, const struct node_denial *d)
{
	forget_denial(n);
	n->denied = mem_strdup(d->what);
	n->anew = true;
}

static natsStatus connect_node(struct node *n)
{
	static const struct nats_callbacks callbacks = {.denied = post_denial};
	if (n->anew || nats_setup_is_over(&n->nats)) {
		roster_disconnect(&n->roster);
		nats_setup_close(&n->nats);
		n->anew = false;
	}
	return nats_setup_connect(&n->nats, &callbacks, n);
}

static natsStatus read_roster(struct node *n)
{
	natsStatus s = roster_read(&n->roster, clock_up_ms());
	if (s == NATS_OK && n->roster.mended)
		log_event(LOG_LEVEL_WARNING, "node", "node", n->name, "state",
			  n->state == NODE_UP ? "up" : "waiting", "epoch",
			  log_number((int64_t)n->row.epoch), "reason",
			  "the bucket had limits that refuse or remove rows: they are lifted",
			  NULL);
	return s;
}

static natsStatus look_at_roster(struct node *n)
{
	natsStatus s = connect_node(n);
	if (s == NATS_OK && n->state == NODE_UP && fence_open())
		renew_epoch(n); /* else another may be about to write its name there */
	return s == NATS_OK ? read_roster(n) : s;
}

static void count_queues(const struct node_view *v)
{
	for (int is = 0; v->there && is < REPLICA_STATES; is++) {
		const char *state = replica_state_name((enum replica_state)is);
		int64_t nodes = 0;
		for (int i = 0; i < v->n; i++)
			nodes += strcmp(v->node[i].state, state) == 0;
		metric_cell_set(metric_cell(FAMILY_cluster_queues, state, NULL), nodes);
	}
}

/* roster NULL: it can't be read now. */
static void post_views(const struct node *n, const struct roster *roster)
{
	struct loop *const to[] = {n->main, n->watcher};
	for (size_t i = 0; i < sizeof to / sizeof to[0]; i++) {
		struct node_view *v = node_view_new(roster);
		v->note.type = NODE_VIEW;
		if (i == 0)
			count_queues(v);
		if (n->doubts)
			node_view_doubt(v, n->name);
		node_view_waits(v, n->name);
		loop_post(to[i], &v->note);
	}
}

static void step_node(struct node *n)
{
	natsStatus s = look_at_roster(n);
	if (atomic_load(&n->interrupt))
		return;
	if (s == NATS_OK && n->state == NODE_UP)
		forget_denial(n);
	post_views(n, s == NATS_OK ? &n->roster : NULL);
	if (n->state == NODE_UP && !fence_open()) {
		lose_epoch(n, "its epoch could not be renewed in time");
	} else if (n->state == NODE_UP && replica_fenced(n->replica)) {
		lose_epoch(n, "its stream is another node's");
	} else if (s != NATS_OK) {
		wait_for(n, why_not(n, s));
	} else if (n->state == NODE_WAITING) {
		try_to_start(n);
	} else {
		judge_own_row(n);
		if (n->state == NODE_UP)
			node_look_at_others(n);
	}
}

static void on_tick(void *owner)
{
	struct node *n = owner;
	if (n->state == NODE_GONE || atomic_load(&n->interrupt))
		return;
	step_node(n);
	loop_timer_in(n->loop, &n->tick,
		      epoch_renew_ms(epoch_lease_ms(n->conf->cluster.adopt_after)));
}

static void say_no_epoch(const struct node *n, struct node_order *o)
{
	buf_printf(&o->says, "this node has no epoch itself: %s\n",
		   n->reason ? n->reason : "it has lost it just now");
}

static void adopt_queue(struct node *n, struct node_order *o, struct roster_row *row)
{
	if (n->state != NODE_UP) {
		say_no_epoch(n, o);
		return;
	}
	uint64_t needed = 0;
	int64_t there = 0;
	enum epoch_adopt may = epoch_adopt(&row->is, &row->seen, true, clock_up_ms());
	if (may == EPOCH_MAY && !node_has_room(n, row, &needed, &there)) {
		buf_printf(&o->says,
			   "there is no room for its queue: it takes %" PRIu64
			   " bytes, and %" PRId64 " are there\n",
			   needed, there);
		return;
	}
	switch (may) {
	case EPOCH_MAY:
		o->done = node_claim(n, row);
		if (o->done)
			row->insisted = row->hollow;
		if (o->done)
			buf_puts(&o->says, "its queue is being adopted\n");
		else if (fence_open())
			buf_puts(&o->says, "another node was first\n");
		else
			say_no_epoch(n, o);
		break;
	case EPOCH_NOT_YET:
		buf_printf(&o->says, "it may still be at work: not silent for long enough\n");
		break;
	case EPOCH_NOT:
		buf_printf(&o->says, "it is %s: there is nothing to adopt\n",
			   replica_state_name(row->is.state));
		break;
	}
}

static const char *why_not_retire(enum replica_state is)
{
	if (is == REPLICA_RETIRED)
		return " already";
	return is == REPLICA_UP ? ": drain it, or have it adopted, before"
				: ": wait until it is adopted";
}

static void retire_node(struct node *n, struct node_order *o, const struct roster_row *row)
{
	struct replica_epoch is = row->is;
	if (is.state != REPLICA_ADOPTED) {
		buf_printf(&o->says, "it is %s%s\n", replica_state_name(is.state),
			   why_not_retire(is.state));
		return;
	}
	if (!node_row_is_right(n, row->node,
			       row)) { /* it may be back, and the bucket has lost that */
		buf_printf(&o->says, "its stream says otherwise, or does not answer: ask again\n");
		return;
	}
	is.state = REPLICA_RETIRED;
	is.epoch++;
	is.seen_ms = clock_wall_ms();
	o->done = roster_write(&n->roster, row->node, &is, row->seen.revision, NULL) == NATS_OK;
	buf_printf(&o->says,
		   o->done ? "this name never comes back\n" : "it has changed just now\n");
	if (!o->done)
		return;
	harvest_retire(&n->nats, row->node, &is); /* or the next look at its stream does */
	node_say(row->node, "retired", is.epoch, "by order");
}

bool node_has_others(const struct node *n)
{
	bool any = false;
	for (int i = 0; i < n->roster.n && !any; i++) {
		const struct roster_row *r = &n->roster.row[i];
		int64_t silent_ms = clock_up_ms() - r->seen.since_ms;
		any = r->there && strcmp(r->node, n->name) != 0 && r->is.state == REPLICA_UP &&
		      (r->is.lease_ms == 0 || silent_ms < r->is.lease_ms);
	}
	return any;
}

/* Somebody must be there to take the queue. */
static void may_drain(struct node *n, struct node_order *o)
{
	if (n->state != NODE_UP) {
		buf_printf(&o->says, "this node has no epoch: %s\n",
			   n->reason ? n->reason : "it has lost it just now");
		return;
	}
	if (!replica_whole(n->replica)) {
		buf_printf(&o->says, "the copy of its queue is not whole yet\n");
		return;
	}
	o->done = node_has_others(n);
	buf_printf(&o->says, o->done ? "" : "there is no other node that could take its queue\n");
}

/* Of this node itself, while it is in doubt. */
static void insist_on_folder(struct node *n, struct node_order *o)
{
	n->insists = o->done = true;
	buf_printf(&o->says, "the queue in its folder is its queue from now on\n");
	loop_timer_in(n->loop, &n->tick, 0);
}

static void obey_order(struct node *n, struct node_order *o)
{
	natsStatus s = connect_node(n);
	if (s == NATS_OK)
		s = read_roster(n);
	struct roster_row *row = o->name ? roster_find(&n->roster, o->name) : NULL;
	if (s != NATS_OK)
		buf_printf(&o->says, "the other nodes are out of reach: %s\n", why_not(n, s));
	else if (o->op == NODE_MAY_DRAIN)
		may_drain(n, o);
	else if (o->op == NODE_ADOPT && n->doubts && strcmp(o->name, n->name) == 0)
		insist_on_folder(n, o);
	else if (!row)
		buf_printf(&o->says, "there is no node %s\n", o->name);
	else if (strcmp(o->name, n->name) == 0)
		buf_printf(&o->says, "it is this node itself: ask another one\n");
	else if (o->op == NODE_ADOPT)
		adopt_queue(n, o, row);
	else
		retire_node(n, o, row);
	if (o->done) /* what it has changed is seen at once */
		s = roster_read(&n->roster, clock_up_ms());
	post_views(n, s == NATS_OK ? &n->roster : NULL);
	loop_post(o->reply_to, &o->note);
}

static void receive_note(void *owner, struct note *note)
{
	struct node *n = owner;
	struct node_order *o = (struct node_order *)note;
	if (note->type == NODE_CONF) {
		struct conf *conf = conf_note_take(note);
		n->minfree = conf->queue_minfree;
		conf_unref(conf);
	} else if (note->type == NODE_TAKEN) {
		free(note);
		node_taken(n);
	} else if (note->type == NODE_DENIED) {
		hear_denial(n, (struct node_denial *)note);
		free(note);
	} else if (note->type == SPOOL_DISOWN) {
		if (!atomic_load(&n->interrupt))
			node_disowned(n, ((struct spool_disown *)note)->done);
		free(note);
	} else if (atomic_load(&n->interrupt)) {
		assert(note->type == NODE_ORDER);
		node_order_free(&o);
	} else {
		assert(note->type == NODE_ORDER);
		obey_order(n, o);
	}
}

/* An answer that comes after the lease helps nobody. */
static int64_t answer_ms(int64_t lease_ms)
{
	if (lease_ms == 0 || lease_ms > WAIT_MOST_MS)
		return WAIT_MOST_MS;
	return lease_ms > WAIT_LEAST_MS ? lease_ms : WAIT_LEAST_MS;
}

/* A disk that is full ends no node: it waits until its next epoch can be noted. */
static bool prepare_node_file(struct node *n, struct buf *error)
{
	bool read = life_read(n->conf->spool, &n->own);
	bool same = read && n->own.epoch > 0 && strcmp(n->own.name, n->name) == 0;
	assert(strlen(n->name) < sizeof n->own.name);
	memcpy(n->own.name, n->name, strlen(n->name) + 1); /* membership.h has compared them */
	if (same || (read && life_write(n->conf->spool, &n->own)))
		return true;
	buf_printf(error, "%s/node: %s", n->conf->spool, strerror(errno));
	return false;
}

struct node *node_new(struct conf *conf, struct spool *spool, struct replica *replica,
		      struct loop *main, struct buf *error)
{
	const char *name = *conf->cluster.name ? conf->cluster.name : conf->own_name;
	if (!replica)
		return NULL;
	struct node *n = mem_zalloc(sizeof *n);
	fence_set(0);
	n->conf = conf_ref(conf);
	n->minfree = conf->queue_minfree;
	n->spool = spool;
	n->replica = replica;
	n->main = main;
	n->name = mem_strndup(name, REPLICA_NODE_MAX);
	n->loop = loop_new("node", receive_note, NULL, n);
	timer_init(&n->tick, on_tick, n);
	nats_setup_init(&n->nats, n->conf, n->name);
	n->nats.ends = &n->interrupt;
	n->nats.wait_ms = answer_ms(epoch_lease_ms(conf->cluster.adopt_after));
	roster_init(&n->roster, &n->nats);
	n->taking.transfer = transfer_new(n->conf, spool, &n->interrupt);
	if (!prepare_node_file(n, error))
		node_free(&n);
	return n;
}

void node_watch(struct node *n, struct loop *watcher)
{
	if (n)
		n->watcher = watcher;
}

void node_start(struct node *n)
{
	if (!n)
		return;
	loop_timer_in(n->loop, &n->tick, 0);
	loop_start(n->loop);
}

void node_wait(const struct node *n)
{
	for (int ms = 0; n && !fence_open() && ms < START_MS; ms += START_LOOK_MS)
		usleep(START_LOOK_MS * 1000);
}

void node_reload(struct node *n, struct conf *conf)
{
	if (n)
		conf_note_post(n->loop, NODE_CONF, conf);
}

void node_post(struct node *n, struct node_order *o)
{
	loop_post(n->loop, &o->note);
}

void node_drain(struct node *n)
{
	atomic_store(&n->draining, true);
}

bool node_drains(const struct node *n)
{
	return n && atomic_load(&n->draining);
}

/* Where that can't be written, a start without the others is refused rather than begun with an empty queue. */
static void note_drained(const struct node *n)
{
	struct epoch_own own;
	if (!life_read(n->conf->spool, &own))
		return;
	own.bond = EPOCH_DRAINED;
	life_write(n->conf->spool, &own);
}

/* A write that was not answered may have been done, and a row that was lost is there again, by another revision. */
static bool has_told(struct node *n)
{
	if (roster_read(&n->roster, clock_up_ms()) != NATS_OK)
		return false;
	const struct roster_row *row = roster_find(&n->roster, n->name);
	bool ours = row && row->is.life == n->row.life && row->is.epoch == n->row.epoch;
	if (ours || !row)
		n->revision = row ? row->seen.revision : 0;
	return ours && row->is.state == REPLICA_DRAINED;
}

static bool tell_others(struct node *n)
{
	bool told = false;
	n->row.state = REPLICA_DRAINED;
	n->row.seen_ms = clock_wall_ms();
	const int64_t until_ms = clock_up_ms() + TELL_MS;
	for (int i = 0; i < DRAIN_TRIES && !told && clock_up_ms() < until_ms; i++)
		told = roster_write(&n->roster, n->name, &n->row, n->revision, NULL) == NATS_OK ||
		       has_told(n);
	return told;
}

/* The others need not wait: nothing is done here any more. NULL: they were told so. */
static const char *hand_over(struct node *n, bool whole)
{
	const char *why = NULL;
	if (n->state != NODE_UP)
		why = "it has lost its epoch";
	else if (!whole)
		why = "the copy has not all of its queue: it stays here";
	else if (!tell_others(n))
		why = "the others could not be told";
	if (!why)
		note_drained(n);
	log_event(why ? LOG_LEVEL_ERROR : LOG_LEVEL_INFO, "node", "node", n->name, "state",
		  !why			? "drained"
		  : n->state == NODE_UP ? "up"
					: "fenced",
		  "epoch", log_number((int64_t)n->row.epoch), "reason",
		  why ? why : "by order; its queue is to be adopted", NULL);
	return why;
}

void node_interrupt(struct node *n)
{
	if (n && !node_drains(n))
		atomic_store(&n->interrupt, true);
}

const char *node_stop(struct node *n, bool whole)
{
	const char *why = NULL;
	if (!n || !n->loop->running)
		return NULL;
	atomic_store(&n->interrupt, true);
	loop_stop(n->loop);
	if (n->taking.runs)
		pthread_join(n->taking.thread, NULL);
	n->taking.runs = false;
	n->nats.ends = NULL; /* but for the last word */
	if (atomic_load(&n->draining))
		why = hand_over(n, whole);
	fence_set(0);
	roster_fini(&n->roster);
	nats_setup_close(&n->nats);
	return why;
}

void node_free(struct node **np)
{
	struct node *n = *np;
	if (!n)
		return;
	assert(!n->taking.runs);
	atomic_store(&n->interrupt, true);
	loop_free(&n->loop);
	roster_fini(&n->roster);
	nats_setup_fini(&n->nats);
	transfer_free(&n->taking.transfer);
	conf_unref(n->conf);
	free(n->taking.unit);
	free(n->reason);
	free(n->denied);
	free(n->name);
	free(n);
	*np = NULL;
}
