/* SPDX-License-Identifier: ISC */
#include "replica/node_core.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/thread.h"
#include "replica/harvest.h"
#include "replica/transfer.h"
#include "spool/spool.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { AGAIN_MS = 1000, LOOK_MS = 50 };

static char *folder_of(const char *node)
{
	char token[REPLICA_TOKEN];
	return mem_printf("adopted-from-%s", replica_token(node, token));
}

static bool take_one(struct node *n, struct node_unit *u, struct buf *error)
{
	char *folder = folder_of(u->node);
	char *path = mem_printf("%s/%s", n->conf->spool, folder);
	struct harvest h = {.conf = n->conf,
			    .node = u->node,
			    .epoch = u->epoch,
			    .folder = folder,
			    .interrupt = &n->interrupt};
	struct transferred t = {.messages = 0};
	bool ok = harvest_run(&h, error) &&
		  transfer_run(n->taking.transfer, path, u->node, &t, error);
	u->end = h.end;
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
				  "epoch", log_number((int64_t)u->epoch), "reason",
				  buf_cstr(&error), NULL);
		buf_fini(&error);
		if (!ok)
			return false;
	}
	return true;
}

static void *adopt(void *argument)
{
	struct node *n = argument;
	struct note *note = mem_zalloc(sizeof *note);
	n->taking.done = take_all(n);
	for (int ms = 0; !n->taking.done && ms < AGAIN_MS && !atomic_load(&n->interrupt);
	     ms += LOOK_MS)
		usleep(LOOK_MS * 1000);
	note->type = NODE_TAKEN;
	loop_post(n->loop, note);
	return NULL;
}

static bool in_unit(const struct node_taking *t, const char *node)
{
	for (int i = 0; i < t->n; i++)
		if (strcmp(t->unit[i].node, node) == 0)
			return true;
	return false;
}

/* Ours, or of one whose queue we are taking. */
static bool belongs(const struct node *n, const struct roster_row *r)
{
	return r->there && r->is.state == REPLICA_ADOPTING &&
	       (strcmp(r->is.by, n->name) == 0 || in_unit(&n->taking, r->is.by)) &&
	       !in_unit(&n->taking, r->node);
}

static struct replica_epoch ours(const struct node *n, const struct roster_row *r)
{
	struct replica_epoch is = r->is;
	is.state = REPLICA_ADOPTING;
	is.seen_ms = clock_wall_ms();
	memset(is.by, 0, sizeof is.by);
	memcpy(is.by, n->name, strlen(n->name));
	return is;
}

bool node_claim(struct node *n, const struct roster_row *r)
{
	struct replica_epoch is = ours(n, r);
	is.epoch++;
	if (r->is.state == REPLICA_DRAINED)
		is.lease_ms = 0; /* it has ended */
	return roster_write(&n->roster, r->node, &is, r->seen.revision, NULL) == NATS_OK;
}

/* Another may have been granted the same revision as we were: then only the later one can do this. */
static bool confirm(struct node *n, struct roster_row *r)
{
	struct replica_epoch is = ours(n, r);
	if (r->confirmed == r->seen.revision)
		return true;
	if (clock_up_ms() - r->seen.since_ms < epoch_renew_ms(n->row.lease_ms))
		return false;
	roster_write(&n->roster, r->node, &is, r->seen.revision, &r->confirmed);
	return false; /* what has become of it is seen next time */
}

static bool enter(struct node *n, struct roster_row *r)
{
	struct node_taking *t = &n->taking;
	if (strcmp(r->is.by, n->name) != 0)
		return node_claim(n, r);
	if (!confirm(n, r))
		return false;
	t->unit = mem_realloc(t->unit, ((size_t)t->n + 1) * sizeof *t->unit);
	struct node_unit *u = &t->unit[t->n++];
	if (r->seen.revision > n->said)
		node_say(r->node, "adopting", r->is.epoch, "it does not answer, or was drained");
	n->said = r->seen.revision > n->said ? r->seen.revision : n->said;
	memcpy(u->node, r->node, sizeof u->node);
	u->epoch = r->is.epoch;
	u->named = u->lost = false;
	return true;
}

/* All that belongs together, by rows that name us: what did not is ours at the next look, so that SOME has to
 * wait for that. */
enum gathered { GATHERED_NOTHING, GATHERED_SOME, GATHERED_ALL };

static enum gathered gather(struct node *n)
{
	bool whole = true;
	n->taking.n = 0;
	for (int i = 0; i < n->roster.n;) {
		struct roster_row *r = &n->roster.row[i++];
		if (!belongs(n, r))
			continue;
		if (strcmp(r->is.by, n->name) != 0)
			whole = false;
		if (!enter(n, r))
			return GATHERED_SOME;
		if (whole)
			i = 0; /* another may have been taking it */
	}
	return n->taking.n == 0 ? GATHERED_NOTHING : whole ? GATHERED_ALL : GATHERED_SOME;
}

static void start(struct node *n)
{
	struct node_taking *t = &n->taking;
	t->done = false;
	t->messages = t->doubtful = t->damaged = 0;
	t->runs = thread_start(&t->thread, "adopt", adopt, n) == 0;
}

static void release(struct node *n)
{
	struct note *note = mem_zalloc(sizeof *note);
	note->type = SPOOL_ADOPTED;
	spool_post(n->spool, note);
	n->released = true;
}

/* Whoever was taking it has lost its own queue, before it was known that it would take this one. */
static bool orphaned(const struct node *n, const struct roster_row *r)
{
	const struct roster_row *by = roster_find(&n->roster, r->is.by);
	return r->is.state == REPLICA_ADOPTING && by &&
	       (by->is.state == REPLICA_ADOPTED || by->is.state == REPLICA_RETIRED);
}

static void choose(struct node *n)
{
	for (int i = 0; i < n->roster.n; i++) {
		const struct roster_row *r = &n->roster.row[i];
		if (!r->there || strcmp(r->node, n->name) == 0 ||
		    (epoch_adopt(&r->is, &r->seen, false, clock_up_ms()) != EPOCH_MAY &&
		     !orphaned(n, r)))
			continue;
		node_claim(n, r);
		return; /* what follows from it is seen next time */
	}
}

/* The row is another's since. What was taken is not worked on here, for it is there. */
static bool lost(struct node_unit *u)
{
	if (!u->lost)
		node_say(u->node, "adopting", u->epoch,
			 "its row is another's since: nothing is done with what was taken");
	u->lost = true;
	return false;
}

/* False: it is not said yet. */
static bool conclude(struct node *n, struct node_unit *u)
{
	const struct roster_row *r = roster_find(&n->roster, u->node);
	/* What it had asked for when we wrote our name may have been done in the same moment: an engine was seen
	 * to grant two writes by one revision. Then it believes in its lease once more. */
	if (r && r->is.state == REPLICA_ADOPTING &&
	    clock_up_ms() - r->seen.since_ms < r->is.lease_ms)
		return false;
	if (!r)
		return false;
	if (r->is.state == REPLICA_ADOPTING ? strcmp(r->is.by, n->name) != 0 : !u->named)
		return lost(u);
	if (r->is.state != REPLICA_ADOPTING)
		return true;
	/* Of a row that names us nobody but us says so, as long as our own epoch holds. */
	u->named = true;
	struct replica_epoch is = r->is;
	is.state = REPLICA_ADOPTED;
	is.seen_ms = clock_wall_ms();
	return roster_write(&n->roster, u->node, &is, r->seen.revision, NULL) == NATS_OK;
}

static void tidy(struct node *n)
{
	for (int i = 0; i < n->taking.n; i++) {
		const struct node_unit *u = &n->taking.unit[i];
		char *folder = folder_of(u->node);
		harvest_discard(&n->nats, u->node, u->end);
		if (n->taking.damaged == 0)
			life_remove(n->conf->spool, folder);
		free(folder);
	}
}

static void finish(struct node *n)
{
	struct node_taking *t = &n->taking;
	bool done = true;
	for (int i = 0; i < t->n; i++)
		done &= conclude(n, &t->unit[i]);
	if (!done)
		return; /* once more at the next look */
	t->done = false;
	metrics_add(METRIC_node_adopted, (int64_t)t->messages);
	metrics_add(METRIC_node_adopted_in_doubt, (int64_t)t->doubtful);
	for (int i = 0; i < t->n; i++)
		log_event(LOG_LEVEL_INFO, "node", "node", t->unit[i].node, "state", "adopted",
			  "epoch", log_number((int64_t)t->unit[i].epoch), "reason",
			  "its messages are in this node's queue", "messages",
			  log_number((int64_t)t->messages), "in_doubt",
			  log_number((int64_t)t->doubtful), "damaged",
			  log_number((int64_t)t->damaged), NULL);
	release(n);
	tidy(n);
	t->n = 0;
}

void node_taken(struct node *n)
{
	if (!n->taking.runs)
		return;
	pthread_join(n->taking.thread, NULL);
	n->taking.runs = false;
}

void node_look_at_others(struct node *n)
{
	if (n->taking.runs)
		return;
	if (n->taking.done) {
		finish(n);
		return;
	}
	switch (gather(n)) {
	case GATHERED_ALL:
		start(n);
		break;
	case GATHERED_SOME:
		break;
	case GATHERED_NOTHING:
		if (n->released)
			choose(n);
		else
			release(n); /* of a former start: the rows say that it is ours */
		break;
	}
}
