/* SPDX-License-Identifier: ISC */
#include "replica/node_core.h"

#include "base/clock.h"
#include "base/fence.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/thread.h"
#include "replica/harvest.h"
#include "replica/node_left.h"
#include "replica/replica.h"
#include "replica/transfer.h"
#include "spool/adoption.h"
#include "spool/disk.h"
#include "spool/spool.h"

#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	AGAIN_MS = 1000,
	LOOK_MS = 50,
	PATIENCE_MS = 60000, /* where adopt_after says nothing */
	LOOKS = 10,	     /* at the rows, until it is looked whether any is missing */
	REST_TIMES = 10,     /* so often that, what was given back is left to others */
	RETIRED_MS =
		3600000 /* so long a retired name has its stream: NATS has synced its row by then */
};

static char *folder_of(const char *node)
{
	char token[REPLICA_TOKEN];
	return mem_printf(LIFE_ADOPTED_FROM "%s", replica_token(node, token));
}

/* All of it, not only what was being delivered. NULL: it is not. */
static const char *why_in_doubt(const struct node_unit *u, const struct harvest *h)
{
	if (u->again)
		return "may have been delivered here since NATS has lost that this queue was "
		       "adopted";
	return h->alone ? "may have been delivered by that node while NATS was full" : NULL;
}

static bool take_one(struct node *n, struct node_unit *u, struct buf *error)
{
	char *folder = folder_of(u->node);
	char *path = mem_printf("%s/%s", n->conf->spool, folder);
	struct harvest h = {.conf = n->conf,
			    .node = u->node,
			    .row = &u->row,
			    .folder = folder,
			    .insists = u->insists,
			    .interrupt = &n->interrupt};
	struct transferred t = {.messages = 0};
	bool ok = harvest_run(&h, error) &&
		  transfer_run(n->taking.transfer, path,
			       &(struct transfer_of){.node = u->node,
						     .doubt = why_in_doubt(u, &h),
						     .ahead_ms = u->row.ahead_ms},
			       &t, error);
	u->end = h.end;
	u->hollow = h.hollow && !u->insists;
	n->taking.messages += t.messages;
	n->taking.doubtful += t.doubtful;
	n->taking.damaged += t.damaged;
	free(path);
	free(folder);
	return ok;
}

static bool take_all(struct node *n)
{
	for (int i = 0; i < n->taking.n; i++) {
		struct buf error = {0};
		struct node_unit *u = &n->taking.unit[i];
		bool ok = !atomic_load(&n->interrupt) && take_one(n, u, &error);
		if (!ok && buf_len(&error) > 0)
			log_event(LOG_LEVEL_ERROR, "node", "node", u->node, "state", "adopting",
				  "epoch", log_number((int64_t)u->row.epoch), "reason",
				  buf_cstr(&error), NULL);
		buf_fini(&error);
		if (!ok)
			return false;
	}
	return true;
}

static void *adopt_unit(void *argument)
{
	struct node *n = argument;
	n->taking.done = take_all(n);
	for (int ms = 0; !n->taking.done && ms < AGAIN_MS && !atomic_load(&n->interrupt);
	     ms += LOOK_MS)
		usleep(LOOK_MS * 1000);
	loop_post(n->loop, mailbox_note(sizeof(struct note), NODE_TAKEN));
	return NULL;
}

static const struct node_unit *find_unit(const struct node_taking *t, const char *node)
{
	for (int i = 0; i < t->n; i++)
		if (strcmp(t->unit[i].node, node) == 0)
			return &t->unit[i];
	return NULL;
}

/* Ours, or of one whose queue we are taking. */
static bool is_for_unit(const struct node *n, const struct roster_row *r)
{
	return r->there && r->is.state == REPLICA_ADOPTING &&
	       (strcmp(r->is.by, n->name) == 0 || find_unit(&n->taking, r->is.by)) &&
	       !find_unit(&n->taking, r->node);
}

static struct replica_epoch make_claim(const struct node *n, const struct roster_row *r)
{
	struct replica_epoch is = r->is;
	const struct roster_row *by = roster_find(&n->roster, is.by);
	if (is.state != REPLICA_ADOPTING) {
		is.with[0] = '\0';
		is.ahead_ms = roster_ahead_ms(r);
	} else if (strcmp(is.by, n->name) != 0) {
		memcpy(is.with, is.by, sizeof is.with);
		is.ahead_ms += by ? roster_ahead_ms(by) : 0;
	}
	is.state = REPLICA_ADOPTING;
	is.seen_ms = clock_wall_ms();
	memset(is.by, 0, sizeof is.by);
	assert(strlen(n->name) < sizeof is.by);
	memcpy(is.by, n->name, strlen(n->name));
	return is;
}

/* While our own epoch holds: else two whose orders cross could each claim the other's queue, and neither would have an epoch again. Two that each
 * have seen nothing of the other since before their own epochs began don't both hold them. */
bool node_claim(struct node *n, const struct roster_row *r)
{
	struct replica_epoch is = make_claim(n, r);
	if (!node_row_is_right(n, r->node, r) || !fence_open())
		return false;
	assert(n->state == NODE_UP && loop_is_ours(n->loop));
	is.epoch++;
	if (r->is.state == REPLICA_DRAINED)
		is.lease_ms = 0; /* it has ended */
	return roster_write(&n->roster, r->node, &is, r->seen.revision, NULL) == NATS_OK;
}

/* Another may have been granted the same revision as we were: then only the later one can do this. */
static bool confirm_claim(struct node *n, struct roster_row *r)
{
	struct replica_epoch is = make_claim(n, r);
	if (r->confirmed == r->seen.revision)
		return true;
	if (clock_up_ms() - r->seen.since_ms < epoch_renew_ms(n->row.lease_ms))
		return false;
	roster_write(&n->roster, r->node, &is, r->seen.revision, &r->confirmed);
	return false; /* what has become of it is seen next time */
}

/* The row and the stream of what a node was taking named that one until now: that some of it lies in the taker's queue is known by the
 * taker's own stream from now on, whatever the bucket loses. */
static bool claim_from_taker(struct node *n, const struct roster_row *r)
{
	const struct node_unit *taker = find_unit(&n->taking, r->is.by);
	assert(taker);
	return harvest_say_claim(&n->nats, taker->node, &taker->row) == NATS_OK && node_claim(n, r);
}

static bool enter_row(struct node *n, struct roster_row *r)
{
	struct node_taking *t = &n->taking;
	if (strcmp(r->is.by, n->name) != 0)
		return claim_from_taker(n, r);
	if (!confirm_claim(n, r) || !node_row_is_right(n, r->node, r))
		return false;
	t->unit = mem_realloc(t->unit, ((size_t)t->n + 1) * sizeof *t->unit);
	struct node_unit *u = &t->unit[t->n++];
	if (r->seen.revision > n->said)
		node_say(r->node, "adopting", r->is.epoch, "it does not answer, or was drained");
	n->said = r->seen.revision > n->said ? r->seen.revision : n->said;
	memcpy(u->node, r->node, sizeof u->node);
	u->row = r->is;
	u->named = u->lost = u->hollow = false;
	u->insists = r->insisted != 0 && r->insisted == r->is.life;
	u->again = life_had(n->conf->spool, r->node, r->is.epoch);
	return true;
}

/* All that belongs together, by rows that name us: what did not is ours at the next look, so that SOME has to
 * wait for that. */
enum gathered { GATHERED_NOTHING, GATHERED_SOME, GATHERED_ALL };

static enum gathered gather_unit(struct node *n)
{
	bool whole = true;
	assert(!n->taking.runs); /* it reads them */
	n->taking.n = 0;
	for (int i = 0; i < n->roster.n;) {
		struct roster_row *r = &n->roster.row[i++];
		if (!is_for_unit(n, r))
			continue;
		if (strcmp(r->is.by, n->name) != 0)
			whole = false;
		if (!enter_row(n, r))
			return GATHERED_SOME;
		if (whole)
			i = 0; /* another may have been taking it */
	}
	return n->taking.n == 0 ? GATHERED_NOTHING : whole ? GATHERED_ALL : GATHERED_SOME;
}

static void start_taking(struct node *n)
{
	struct node_taking *t = &n->taking;
	assert(!t->runs && t->n > 0);
	assert(t->giving == GIVING_NOTHING && !t->releasing);
	t->done = false;
	t->messages = t->doubtful = t->damaged = 0;
	if (t->failing_ms == 0)
		transfer_begin(t->transfer);
	t->runs = thread_start(&t->thread, "adopt", adopt_unit, n) == 0;
}

static void release_adopted(struct node *n)
{
	spool_post(n->spool, mailbox_note(sizeof(struct note), SPOOL_ADOPTED));
	n->released = true;
}

/* Orders crossed: each was told to take the next one's queue, and so none of them has an epoch to take anything with. */
static bool is_in_circle(const struct node *n, const struct roster_row *r)
{
	const struct roster_row *by = r;
	for (int i = 0; i < n->roster.n && by && by->is.state == REPLICA_ADOPTING; i++) {
		by = roster_find(&n->roster, by->is.by);
		if (by == r)
			return true;
	}
	return false;
}

/* Whoever was taking it has lost its own queue, before it was known that it would take this one. */
static bool is_orphaned(const struct node *n, const struct roster_row *r)
{
	const struct roster_row *by = roster_find(&n->roster, r->is.by);
	return r->is.state == REPLICA_ADOPTING && by &&
	       (by->is.state == REPLICA_ADOPTED || by->is.state == REPLICA_RETIRED ||
		is_in_circle(n, r));
}

bool node_has_room(struct node *n, const struct roster_row *r, uint64_t *needed, int64_t *there)
{
	*needed = 0;
	*there = 0;
	int folder = disk_open_top(n->conf->spool);
	if (folder < 0)
		return true;
	*there = disk_free_bytes(folder) - n->minfree;
	disk_close(folder);
	if (harvest_bytes(&n->nats, r->node, needed) != NATS_OK)
		return true;
	*needed *= 2;
	return *there > 0 && *needed <= (uint64_t)*there;
}

/* Once for each time that it is to be adopted. */
static bool is_left_already(struct roster_row *r)
{
	bool already = r->left == r->seen.revision;
	r->left = r->seen.revision;
	return already;
}

static void say_no_room(struct roster_row *r, uint64_t needed, int64_t there)
{
	if (is_left_already(r))
		return;
	log_event(LOG_LEVEL_WARNING, "node", "node", r->node, "state", "left", "epoch",
		  log_number((int64_t)r->is.epoch), "reason", "there is no room here for its queue",
		  "needed", log_number((int64_t)needed), "free", log_number(there), NULL);
}

static void say_no_copy(struct roster_row *r)
{
	if (is_left_already(r))
		return;
	log_event(LOG_LEVEL_WARNING, "node", "node", r->node, "state", "left", "epoch",
		  log_number((int64_t)r->is.epoch), "reason",
		  "NATS has no copy of its queue, which may be on its disk", NULL);
}

static bool is_hollow(const struct roster_row *r)
{
	return r->hollow != 0 && r->hollow == r->is.life && r->insisted != r->hollow;
}

static void say_hollow(struct roster_row *r)
{
	if (is_left_already(r))
		return;
	log_event(LOG_LEVEL_WARNING, "node", "node", r->node, "state", "left", "epoch",
		  log_number((int64_t)r->is.epoch), "reason",
		  "NATS has lost the beginning of its queue, all of which may be on its disk: "
		  "\"sluice node adopt\" takes what is left",
		  NULL);
}

/* Adopted, it would be put aside by its node, with all that nobody else has. Whose stream was there once has it until its name is
 * retired. */
static bool copy_is_lost(struct node *n, const struct roster_row *r)
{
	uint64_t bytes;
	return (r->is.state == REPLICA_UP || r->is.state == REPLICA_DRAINED) &&
	       harvest_bytes(&n->nats, r->node, &bytes) == NATS_NOT_FOUND;
}

static bool may_choose(struct node *n, struct roster_row *r)
{
	int64_t now_ms = clock_up_ms(), there;
	uint64_t needed;
	if (!r->there || strcmp(r->node, n->name) == 0 || now_ms < r->rest_ms ||
	    (epoch_adopt(&r->is, &r->seen, false, now_ms) != EPOCH_MAY && !is_orphaned(n, r)))
		return false;
	if (copy_is_lost(n, r)) {
		say_no_copy(r);
		return false;
	}
	if (is_hollow(r)) {
		say_hollow(r);
		return false;
	}
	bool room = node_has_room(n, r, &needed, &there);
	if (!room)
		say_no_room(r, needed, there);
	return room;
}

/* That it has nobody who takes it may be what the bucket says since it has lost that a taker came back. */
static bool takers_are_right(struct node *n, const struct roster_row *r)
{
	const struct roster_row *by = r;
	for (int i = 0; i < n->roster.n && by && by->is.state == REPLICA_ADOPTING; i++) {
		by = roster_find(&n->roster, by->is.by);
		if (by && !node_row_is_right(n, by->node, by))
			return false;
	}
	return true;
}

static void claim_one(struct node *n)
{
	for (int i = 0; i < n->roster.n; i++) {
		struct roster_row *r = &n->roster.row[i];
		if (!may_choose(n, r))
			continue;
		if (takers_are_right(n, r))
			node_claim(n, r);
		return; /* what follows from it is seen next time */
	}
}

/* The row is another's since. Where it says that we have the queue, or that the life after ours has begun, our own word got through, though
 * nobody has answered it. */
static bool is_lost(const struct node *n, const struct node_unit *u)
{
	const struct roster_row *r = roster_find(&n->roster, u->node);
	const struct harvest_origin of = {.life = u->row.life, .epoch = u->row.epoch};
	if (!r)
		return false;
	if (r->is.state == REPLICA_ADOPTING)
		return strcmp(r->is.by, n->name) != 0;
	return !u->named && left_of(n->name, &r->is, &of, u->again) != LEFT_OURS;
}

/* False: it is not said yet. */
static bool say_adopted(struct node *n, struct node_unit *u)
{
	const struct roster_row *r = roster_find(&n->roster, u->node);
	/* A write that its owner had asked for when we wrote our name may have been done in the same moment: an engine was seen
	 * to grant two writes by one revision. Then it believes in its lease once more. */
	if (r && r->is.state == REPLICA_ADOPTING &&
	    clock_up_ms() - r->seen.since_ms < r->is.lease_ms)
		return false;
	if (!r)
		return false;
	if (r->is.state != REPLICA_ADOPTING || u->lost)
		return true;
	struct replica_epoch is = r->is;
	is.state = REPLICA_ADOPTED;
	is.seen_ms = clock_wall_ms();
	/* The stream first: what the bucket loses is written anew from there. */
	if (harvest_say_claim(&n->nats, u->node, &is) != NATS_OK) {
		node_row_is_right(n, u->node,
				  r); /* another may have it, and the bucket has lost that */
		return false;
	}
	/* Of a row that names us nobody but us says so, as long as our own epoch holds. */
	u->named = true;
	return roster_write(&n->roster, u->node, &is, r->seen.revision, NULL) == NATS_OK;
}

static void tidy_unit(struct node *n)
{
	for (int i = 0; i < n->taking.n; i++) {
		const struct node_unit *u = &n->taking.unit[i];
		char *folder = folder_of(u->node);
		if (!u->lost)
			harvest_discard(&n->nats, u->node, &u->row, u->end);
		if (n->taking.damaged == 0)
			harvest_remove_folder(n->conf->spool, folder);
		else
			life_keep(n->conf->spool, folder, "messages in it are damaged");
		free(folder);
	}
}

/* Mail that a former start had taken may be ours already, without having been released: the queue does not tell it from
 * what is being taken. */
static bool may_give_back(const struct node *n)
{
	return n->released || node_left(n) < LEFT_OURS;
}

/* All of it, before anything is said of it: what is in our queue can't be told by the node that it was of. */
static void give_back(struct node *n, const char *why)
{
	struct node_taking *t = &n->taking;
	assert(t->giving == GIVING_NOTHING && !t->runs);
	assert(!t->releasing);
	t->why = why;
	t->done = false;
	t->giving = GIVING_WANTED;
}

static void disown_queue(struct node *n)
{
	assert(n->taking.giving == GIVING_WANTED);
	struct spool_disown *d = mem_zalloc(sizeof *d);
	n->taking.giving = GIVING_ASKED;
	d->note.type = SPOOL_DISOWN;
	d->reply_to = n->loop;
	spool_post(n->spool, &d->note);
}

void node_disowned(struct node *n, bool done)
{
	assert(loop_is_ours(n->loop));
	assert(n->taking.giving == GIVING_ASKED);
	n->taking.giving = done ? GIVING_GONE : GIVING_WANTED;
}

static bool is_ours_to_return(const struct node *n, const struct roster_row *r)
{
	return r->is.state == REPLICA_ADOPTING && strcmp(r->is.by, n->name) == 0;
}

/* Some of it may lie in the queue of another that goes back, too: whoever has that, has both. */
static const struct node_unit *taker_of(const struct node *n, const struct roster_row *r)
{
	return r && is_ours_to_return(n, r) ? find_unit(&n->taking, r->is.with) : NULL;
}

/* Whoever has room may have it at once, and its node, if it comes back; one that another was taking only with that. False: it is not said
 * yet. */
static bool return_row(struct node *n, const struct node_unit *u)
{
	struct roster_row *r = roster_find(&n->roster, u->node);
	if (!r || !is_ours_to_return(n, r))
		return r != NULL;
	const struct node_unit *taker = taker_of(n, r);
	struct replica_epoch is = r->is;
	is.seen_ms = clock_wall_ms();
	if (taker) {
		is.epoch++; /* its stream says of this one that it is ours */
		memcpy(is.by, taker->node, sizeof is.by);
	} else {
		is.state = REPLICA_DRAINED;
		is.seen_ms += is.ahead_ms; /* as its node would have written */
		is.ahead_ms = 0;
	}
	is.with[0] = '\0';
	if (roster_write(&n->roster, u->node, &is, r->seen.revision, NULL) != NATS_OK)
		return false;
	node_say(u->node, "given back", u->row.epoch, n->taking.why);
	return true;
}

static int64_t patience_ms(const struct node *n)
{
	int64_t adopt_after_ms = n->conf->cluster.adopt_after;
	return adopt_after_ms > 0 ? adopt_after_ms : PATIENCE_MS;
}

static void forget_unit(struct node *n)
{
	struct node_taking *t = &n->taking;
	assert(t->giving == GIVING_GONE && !t->runs);
	for (int i = 0; i < t->n; i++) {
		struct roster_row *r = roster_find(&n->roster, t->unit[i].node);
		char *folder = folder_of(t->unit[i].node);
		if (r && !is_hollow(r)) /* that is not chosen anyway, but to be told of */
			r->rest_ms = clock_up_ms() + REST_TIMES * patience_ms(n);
		harvest_remove_folder(n->conf->spool, folder);
		free(folder);
	}
	node_left_lost_aside(n);
	t->n = 0;
	t->failing_ms = 0;
	t->giving = GIVING_NOTHING;
	n->released = true; /* there is nothing of a former start either */
}

static bool return_each(struct node *n, bool taken)
{
	bool done = true;
	for (int i = 0; i < n->taking.n && done; i++) {
		const struct node_unit *u = &n->taking.unit[i];
		if (taken == (taker_of(n, roster_find(&n->roster, u->node)) != NULL))
			done = return_row(n, u);
	}
	return done;
}

/* When the copy of our queue has it no more, too: whoever adopts that does not know what is not ours. Those that others were taking
 * first, so that nobody has the taker without them. */
static void return_rows(struct node *n)
{
	struct node_taking *t = &n->taking;
	assert(t->giving != GIVING_NOTHING && !t->runs);
	bool gone = t->giving == GIVING_GONE && (t->n == 0 || replica_even(n->replica));
	if (gone && return_each(n, true) && return_each(n, false))
		forget_unit(n);
}

struct asking {
	struct node *node;
	bool right;
};

/* Not of those that are taken: they say that we do. */
static void ask_other_stream(void *owner, const char *node)
{
	struct asking *a = owner;
	struct node *n = a->node;
	if (!a->right || strcmp(node, n->name) == 0 || find_unit(&n->taking, node))
		return;
	const struct roster_row *r = roster_find(&n->roster, node);
	a->right = node_row_is_right(n, node, r && r->there ? r : NULL);
}

/* A row says that more belongs to those that are taken. */
static bool unit_lacks_queue(const struct node *n)
{
	for (int i = 0; i < n->roster.n; i++)
		if (is_for_unit(n, &n->roster.row[i]))
			return true;
	return false;
}

/* Whoever is taken may have taken some of another's queue, and we before our last start: that is in our queue now, and all of it is released
 * together. The bucket may have lost that, which the stream of that other knows: nothing was taken before it said so, and
 * since all was read nothing is. False: a row was written anew, which the next look sees, or nobody knows yet. */
static bool streams_agree(struct node *n)
{
	struct asking a = {.node = n, .right = true};
	return nats_setup_nodes(&n->nats, ask_other_stream, &a) && a.right;
}

static bool any_lost(struct node *n, bool *any_named)
{
	bool any = false;
	*any_named = false;
	for (int i = 0; i < n->taking.n; i++) {
		struct node_unit *u = &n->taking.unit[i];
		u->lost = is_lost(n, u);
		any |= u->lost;
		*any_named |= u->named;
	}
	return any;
}

/* And not only the bucket's word for it, which is written anew then. */
static bool unit_is_lost(struct node *n)
{
	bool lost = true;
	for (int i = 0; i < n->taking.n && lost; i++) {
		const struct node_unit *u = &n->taking.unit[i];
		lost = node_row_is_right(n, u->node, roster_find(&n->roster, u->node));
	}
	return lost;
}

static void finish_taking(struct node *n)
{
	struct node_taking *t = &n->taking;
	bool done = true, named;
	assert(t->done && !t->runs && !t->releasing);
	const bool lost = any_lost(n, &named);
	/* Else its stream would go on saying that it is being taken, where all is ours by another of them. */
	if (lost && !unit_is_lost(n))
		return;
	if (lost && !named && may_give_back(n)) {
		give_back(n, "a row of those that are taken together is another's since");
		return;
	}
	/* Mail that an attempt before the last start had taken is in our queue, and perhaps not in the copy of that yet. */
	if (!replica_whole(n->replica))
		return;
	if (!named && unit_lacks_queue(n)) {
		t->done = false; /* that is taken with them, from the beginning */
		return;
	}
	if (!named && !streams_agree(n))
		return;
	for (int i = 0; i < t->n; i++)
		done &= say_adopted(n, &t->unit[i]) &&
			life_note_had(n->conf->spool, t->unit[i].node, t->unit[i].row.epoch);
	if (!done)
		return; /* once more at the next look */
	t->done = false;
	metrics_add(METRIC_node_adopted, (int64_t)t->messages);
	metrics_add(METRIC_node_adopted_in_doubt, (int64_t)t->doubtful);
	for (int i = 0; i < t->n; i++)
		log_event(LOG_LEVEL_INFO, "node", "node", t->unit[i].node, "state", "adopted",
			  "epoch", log_number((int64_t)t->unit[i].row.epoch), "reason",
			  "its messages are in this node's queue", "messages",
			  log_number((int64_t)t->messages), "in_doubt",
			  log_number((int64_t)t->doubtful), "damaged",
			  log_number((int64_t)t->damaged), NULL);
	t->releasing = true;
	release_adopted(n);
}

/* Folders that are left say what has been taken and is not released. */
static void tidy_when_released(struct node *n)
{
	assert(n->taking.releasing && !n->taking.runs);
	if (node_any_is_noted(n)) {
		release_adopted(n); /* its file could not be removed */
		return;
	}
	tidy_unit(n);
	n->taking.releasing = false;
	n->taking.n = 0;
}

static void note_hollow(struct node *n)
{
	for (int i = 0; i < n->taking.n; i++) {
		const struct node_unit *u = &n->taking.unit[i];
		struct roster_row *r = roster_find(&n->roster, u->node);
		if (r && u->hollow)
			r->hollow = u->row.life;
	}
}

void node_taken(struct node *n)
{
	struct node_taking *t = &n->taking;
	assert(loop_is_ours(n->loop));
	if (!t->runs)
		return;
	pthread_join(t->thread, NULL);
	t->runs = false;
	note_hollow(n);
	if (t->done)
		t->failing_ms = 0;
	else if (t->failing_ms == 0)
		t->failing_ms = clock_up_ms();
}

/* Its node, if it comes back, is to have what is on its disk. */
static bool any_hollow(const struct node *n)
{
	bool any = false;
	for (int i = 0; i < n->taking.n; i++)
		any |= is_hollow(roster_find(&n->roster, n->taking.unit[i].node));
	return any && may_give_back(n);
}

/* Others may succeed where we can't. */
static bool is_hopeless(const struct node *n)
{
	const struct node_taking *t = &n->taking;
	return t->failing_ms > 0 && node_has_others(n) && may_give_back(n) &&
	       clock_up_ms() - t->failing_ms >= patience_ms(n);
}

static void ask_for_lost_row(void *owner, const char *name)
{
	struct asking *a = owner;
	char node[REPLICA_NODE_MAX + 1];
	if (!replica_token_parse(name + strlen(LIFE_ADOPTED_FROM), node))
		return;
	const struct roster_row *r = roster_find(&a->node->roster, node);
	if (a->right && (!r || !r->there))
		a->right = node_row_is_right(a->node, node, NULL);
}

/* The bucket may have lost which of them we are taking, or have taken: what they say, or that they are there. */
static bool all_rows_are_right(struct node *n)
{
	struct asking a = {.node = n, .right = true};
	for (int i = 0; i < n->roster.n && a.right; i++)
		if (n->roster.row[i].there)
			a.right = node_row_is_right(n, n->roster.row[i].node, &n->roster.row[i]);
	return life_each_leftover(n->conf->spool, ask_for_lost_row, &a) && a.right;
}

/* Taken by a former start, and ours by the rows. Until that is done nothing is taken: the spool would release it, too. */
static void release_left(struct node *n)
{
	assert(!n->taking.runs && n->taking.giving == GIVING_NOTHING);
	assert(!n->taking.releasing);
	n->taking.n = 0;
	n->taking.releasing = true;
	release_adopted(n);
}

/* Folders lie about of adoptions that were killed when their rows said already that they had come to an end. */
static void begin_alone(struct node *n)
{
	life_keep_leftovers(n->conf->spool, "the adoption that it was made for has ended");
	release_left(n);
}

/* Nothing that is to be taken is in our queue yet, so that all that a former start had taken is ours. */
static bool may_release_first(struct node *n)
{
	bool begun = false;
	if (n->released)
		return false;
	for (int i = 0; i < n->taking.n; i++)
		begun |= node_left_has(n, n->taking.unit[i].node);
	return (!begun || !node_any_is_noted(n)) && all_rows_are_right(n);
}

/* Else it could not be told from what is taken then, and that could not be given back. */
static void begin_beside_unit(struct node *n)
{
	node_left_ours_aside(n);
	release_left(n);
}

/* Until then a bucket that has lost the row gets it from there. */
static void tend_retired(struct node *n, const struct roster_row *r)
{
	if (clock_up_ms() - r->seen.since_ms >= RETIRED_MS)
		harvest_remove(&n->nats, r->node);
	else
		harvest_retire(&n->nats, r->node, &r->is);
}

/* Also where there is no room here for its queue, so that nobody claims it: what the bucket has lost may be that it was adopted. */
static bool is_silent(const struct roster_row *r)
{
	return epoch_adopt(&r->is, &r->seen, false, clock_up_ms()) == EPOCH_MAY;
}

static void look_for_row(void *owner, const char *node)
{
	struct node *n = owner;
	const struct roster_row *r = roster_find(&n->roster, node);
	if (r && r->is.state == REPLICA_RETIRED)
		tend_retired(n, r);
	else if (!r)
		node_row_is_right(n, node, NULL);
	else if (r->there && (r->is.state == REPLICA_ADOPTED || is_silent(r)))
		node_row_is_right(n, node, r);
}

/* Another may have it: that had our queue, too, which the bucket has lost since. True: that is seen to first. */
static bool judge_left(struct node *n)
{
	enum left left = node_left(n);
	if (left == LEFT_LOST && all_rows_are_right(n))
		give_back(n, "a queue that was taken before the last start is another's since");
	return left == LEFT_LOST || left == LEFT_UNREAD;
}

void node_look_at_others(struct node *n)
{
	assert(loop_is_ours(n->loop));
	/* Of one that is off nobody else would write what the bucket has lost: that it was there, or came back since its queue was adopted. */
	if (n->looks++ % LOOKS == 0)
		nats_setup_nodes(&n->nats, look_for_row, n);
	if (n->taking.runs)
		return;
	if (n->taking.giving == GIVING_WANTED)
		disown_queue(n);
	if (n->taking.giving != GIVING_NOTHING) {
		return_rows(n);
		return;
	}
	if (n->taking.releasing) {
		tidy_when_released(n);
		return;
	}
	if (n->taking.done) {
		finish_taking(n);
		return;
	}
	if (!n->released && judge_left(n))
		return;
	switch (gather_unit(n)) {
	case GATHERED_ALL:
		if (may_release_first(n))
			begin_beside_unit(n);
		else if (any_hollow(n))
			give_back(n, "NATS has lost the beginning of its queue");
		else if (is_hopeless(n))
			give_back(n, "it could not be taken here");
		else
			start_taking(n);
		break;
	case GATHERED_SOME:
		break;
	case GATHERED_NOTHING:
		if (n->taking.failing_ms > 0 && may_give_back(n))
			give_back(n, "its row is another's since");
		else if (n->released)
			claim_one(n);
		else if (all_rows_are_right(n))
			begin_alone(n);
		break;
	}
}
