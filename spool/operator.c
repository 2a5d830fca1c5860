/* SPDX-License-Identifier: ISC */
#include "base/clock.h"
#include "base/ident.h"
#include "base/mem.h"
#include "base/name_key.h"
#include "spool/commit.h"
#include "spool/copy_wait.h"
#include "spool/sample.h"
#include "spool/shape.h"
#include "spool/op.h"
#include "spool/effect.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { STEP = 1000 }; /* messages a turn: mail goes on meanwhile */

const char *spool_queue_name(enum spool_queue q)
{
	static const char *const name[] = {"incoming", "active", "deferred", "hold"};
	assert(q <= SPOOL_HOLD);
	return name[q];
}

unsigned spool_queue_bit(const char *name, size_t len)
{
	for (int q = SPOOL_INCOMING; q <= SPOOL_HOLD; q++) {
		const char *other = spool_queue_name((enum spool_queue)q);
		if (strlen(other) == len && memcmp(other, name, len) == 0)
			return 1u << q;
	}
	return 0;
}

struct spool_command *spool_command_new(int op, struct loop *reply_to, void *owner)
{
	struct spool_command *c = mem_zalloc(sizeof *c);
	c->note.type = SPOOL_COMMAND;
	c->op = op;
	c->reply_to = reply_to;
	c->owner = owner;
	return c;
}

void spool_command_free(struct spool_command **cp)
{
	struct spool_command *c = *cp;
	if (!c)
		return;
	for (int i = 0; i < c->nrow; i++) {
		envelope_free(&c->row[i].envelope);
		content_unref(c->row[i].content);
	}
	free(c->row);
	free(c->domain);
	shape_free(&c->shape);
	sample_free(&c->sample);
	free(c);
	*cp = NULL;
}

static bool add_row(struct spool_command *c, const struct stub *stub)
{
	struct envelope *e = fetch_envelope(stub);
	if (!e)
		return false;
	if (stub->state == STUB_DEFERRED)
		e->due_ms = stub->due_ms;
	c->row = mem_realloc(c->row, ((size_t)c->nrow + 1) * sizeof *c->row);
	bool parked = stub->state == STUB_DEFERRED && stub->parked;
	c->row[c->nrow++] = (struct spool_row){.queue = stub_queue(stub),
					       .envelope = e,
					       .generation = stub->generation,
					       .site = parked ? stub->site : 0};
	return true;
}

/* Has it a recipient in the domain that is asked for, if one is? */
static bool is_asked_for(const struct spool *s, const struct spool_command *c,
			 const struct stub *stub)
{
	struct domain_count one, *of = &one;
	uint32_t n = c->domain ? domains_rcpts(&s->domains, stub, &of) : 0;
	for (uint32_t i = 0; i < n; i++)
		if (name_key_fits(c->domain, domains_name(&s->domains, of[i].domain)))
			return true;
	return !c->domain;
}

static const struct stub *next_to_list(const struct spool *s, const struct spool_command *c)
{
	if (!c->id)
		return catalog_next(&s->catalog, c->after);
	return c->after < c->id ? catalog_find(&s->catalog, c->id) : NULL;
}

static void list_messages(struct spool *s, struct spool_command *c)
{
	const struct stub *stub;
	while (c->nrow < c->limit && (stub = next_to_list(s, c))) {
		c->after = stub->id;
		if (!is_asked_for(s, c, stub) || (c->held_only && stub->state != STUB_HELD))
			continue;
		if (add_row(c, stub))
			continue;
		c->unread++;
		c->error = errno;
	}
}

static void show_message(struct spool *s, struct spool_command *c)
{
	const struct stub *stub = catalog_find(&s->catalog, c->id);
	if (!stub)
		return;
	if (!add_row(c, stub)) {
		c->error = errno;
		return;
	}
	struct spool_row *row = &c->row[0];
	row->content = c->checked ? fetch_checked(s, stub, row->envelope)
				  : fetch_content(s, stub, row->envelope);
	row->error = row->content ? 0 : errno;
}

static bool wants_hold(enum stub_wish wish)
{
	return wish == WISH_HOLD || wish == WISH_HOLD_BOUNCED;
}

static bool wants_try(enum stub_wish wish)
{
	return wish == WISH_REQUEUE || wish == WISH_RENEW;
}

static void rejuvenate_envelope(struct envelope *e)
{
	e->arrived_ms = clock_wall_ms();
	e->warned = false;
}

static void fulfil_wish(enum stub_wish wish, struct envelope *e)
{
	if (wish == WISH_NONE)
		return;
	e->held = wants_hold(wish);
	e->returned |= wish == WISH_BOUNCE || wish == WISH_HOLD_BOUNCED;
	if (wish == WISH_RENEW)
		rejuvenate_envelope(e);
	if (e->held)
		return;
	e->due_ms = clock_wall_ms();
	if (wants_try(wish) && e->not_before_ms > e->due_ms)
		e->due_ms = e->not_before_ms;
}

struct op *operator_keep(struct spool *s, struct stub *stub, struct envelope *e,
			 enum stub_wish wish)
{
	assert(stub->releasing && e->id == stub->id);
	fulfil_wish(wish, e);
	struct op *op = op_add(s, OP_KEEP, stub);
	op->envelope = e;
	op->urgent = wants_try(wish);
	return op;
}

/* Each of these does what is ordered with one message, and says why not, where it is not for it. */
enum { MOVED = SPOOL_UNMOVED };

static bool is_scheduled(const struct stub *stub)
{
	return stub->state == STUB_DEFERRED && stub->scheduled && stub->due_ms > clock_wall_ms();
}

static bool lets_go_early(const struct spool_command *c, const struct stub *stub)
{
	return is_scheduled(stub) && c->held_too && (c->op == SPOOL_FLUSH || c->op == SPOOL_RESUME);
}

static int rewrite_envelope(struct spool *s, struct spool_command *c, struct stub *stub,
			    enum stub_wish wish)
{
	struct envelope *e = fetch_envelope(stub);
	if (!e)
		return SPOOL_STUCK;
	if (c->fresh)
		rejuvenate_envelope(e);
	if (lets_go_early(c, stub))
		envelope_let_go(e, clock_wall_ms());
	assert(stub->state != STUB_ACTIVE && !stub->releasing && !stub->wish);
	stub_enter(s, stub, STUB_ACTIVE); /* no runner may take it now */
	stub->work = NULL;
	stub->releasing = true;
	operator_keep(s, stub, e, wish);
	c->recorded = true;
	return MOVED;
}

/* Whatever it waits for; its place in the heap is left to the caller. */
static void urge_message(struct spool *s, struct stub *stub, int64_t now_ms)
{
	assert(stub->state == STUB_DEFERRED);
	parked_end(&s->parked, stub);
	stub_set_due(stub, now_ms);
	stub->urgent = true;
}

static int make_due(struct spool *s, struct stub *stub)
{
	if (stub->state != STUB_DEFERRED)
		return SPOOL_AT_WORK;
	urge_message(s, stub, clock_wall_ms());
	due_moved(&s->deferred, stub);
	return MOVED;
}

/* Orders count as they would one after the other, were the message at rest: none but to delete it undoes a bounce. */
static enum stub_wish wish_after(enum stub_wish was, enum stub_wish next)
{
	if ((was != WISH_BOUNCE && was != WISH_HOLD_BOUNCED) || next == WISH_DELETE)
		return next;
	return next == WISH_HOLD ? WISH_HOLD_BOUNCED : WISH_BOUNCE;
}

static int wait_for_release(struct spool *s, struct spool_command *c, struct stub *stub,
			    enum stub_wish wish)
{
	assert(stub->state == STUB_ACTIVE && wish != WISH_NONE);
	c->cancelled++;
	stub->wish = wish_after((enum stub_wish)stub->wish, wish);
	if (stub->work)
		effect_cancel(s, stub);
	return MOVED;
}

static int delete_one(struct spool *s, struct spool_command *c, struct stub *stub)
{
	op_finish(s, stub);
	c->recorded = true;
	return MOVED;
}

static int order_one(struct spool *s, struct spool_command *c, struct stub *stub)
{
	static const enum stub_wish wish[] = {
		[SPOOL_DELETE] = WISH_DELETE,	[SPOOL_SUSPEND] = WISH_HOLD,
		[SPOOL_REQUEUE] = WISH_REQUEUE, [SPOOL_BOUNCE] = WISH_BOUNCE,
		[SPOOL_RESUME] = WISH_REQUEUE,	[SPOOL_FLUSH] = WISH_REQUEUE,
	};
	assert(c->op > SPOOL_SHAPE && (size_t)c->op < sizeof wish / sizeof wish[0]);
	const bool held = stub->state == STUB_HELD;
	const bool releases = c->op == SPOOL_RESUME || (c->op == SPOOL_FLUSH && c->held_too);
	if (stub->state == STUB_ADOPTED)
		return SPOOL_ADOPTING;
	if (held && stub->releasing)
		return SPOOL_REPLACED;
	if (stub->unsettled || stub->releasing)
		return SPOOL_STUCK;
	if (held && (c->op == SPOOL_SUSPEND || (c->op == SPOOL_FLUSH && !c->held_too)))
		return SPOOL_HELD;
	if (releases && wants_hold((enum stub_wish)stub->wish))
		return wait_for_release(s, c, stub, c->fresh ? WISH_RENEW : WISH_REQUEUE);
	if (lets_go_early(c, stub))
		return rewrite_envelope(s, c, stub, WISH_REQUEUE);
	if (is_scheduled(stub) && (c->op == SPOOL_FLUSH || c->op == SPOOL_RESUME))
		return SPOOL_SCHEDULED;
	if (!held && c->op == SPOOL_FLUSH)
		return make_due(s, stub);
	if (!held && (c->op == SPOOL_RESUME || c->held_only))
		return SPOOL_NOT_HELD;
	if (stub->state == STUB_ACTIVE)
		return wait_for_release(s, c, stub, wish[c->op]);
	return c->op == SPOOL_DELETE ? delete_one(s, c, stub)
				     : rewrite_envelope(s, c, stub, wish[c->op]);
}

static void count_order(struct spool_command *c, int came_of_it)
{
	assert(came_of_it >= 0 && came_of_it <= MOVED);
	if (came_of_it == MOVED)
		c->affected++;
	else
		c->unmoved[came_of_it]++;
}

static void flush_all(struct spool *s, struct spool_command *c)
{
	int64_t now_ms = clock_wall_ms();
	struct catalog_at at = catalog_from(&s->catalog, 0);
	for (const struct stub *stub; (stub = catalog_step(&s->catalog, &at));)
		c->unmoved[SPOOL_HELD] += stub->state == STUB_HELD;
	for (uint32_t i = 1; i <= s->deferred.n; i++) {
		struct stub *stub = s->deferred.heap[i];
		bool waits = is_scheduled(stub);
		c->unmoved[SPOOL_SCHEDULED] += waits;
		c->affected += !waits;
		if (!waits)
			urge_message(s, stub, now_ms);
	}
	due_all_moved(&s->deferred);
}

/* The operator was told that it is deleted, and no other order makes that untrue. The same one waits as the first does. */
static bool is_deleted(const struct spool_command *c, const struct stub *stub)
{
	return stub->wish == WISH_DELETE && c->op != SPOOL_DELETE;
}

/* One message, or the next of all. True: there are more. */
static bool order_next(struct spool *s, struct spool_command *c)
{
	int n = 0;
	struct stub *stub =
		c->id ? catalog_find(&s->catalog, c->id) : catalog_next(&s->catalog, c->after);
	if (!c->until) /* what comes in meanwhile is none of it */
		c->until = c->id ? c->id : catalog_last(&s->catalog);
	if (c->id && (!stub || is_deleted(c, stub)))
		c->unmoved[SPOOL_MISSING]++;
	for (; stub && stub->id <= c->until && n < STEP; n++) {
		c->after = stub->id;
		if (!is_deleted(c, stub) && is_asked_for(s, c, stub))
			count_order(c, order_one(s, c, stub));
		stub = c->id ? NULL : catalog_next(&s->catalog, c->after);
	}
	/* The answer is to be true after a crash too. */
	c->unsafe |= !commit_now(s);
	return stub && stub->id <= c->until;
}

/* Its envelope is read only where the sender's domain leaves it open, or a flow is asked for. */
static bool is_wanted(const struct spool *s, struct spool_command *c, const struct stub *stub)
{
	const struct shape *shape = c->shape;
	enum shape_guess guess =
		shape_guess_sender(shape, domains_name(&s->domains, domains_sender(stub)));
	if (guess == SHAPE_NO || (guess == SHAPE_YES && shape->nflow == 0))
		return guess == SHAPE_YES;
	struct envelope *e = fetch_envelope(stub);
	if (!e) {
		c->unread++;
		c->error = errno;
	}
	bool wanted = e && shape_wants_flow(shape, envelope_flow(e)) &&
		      (guess == SHAPE_YES || shape_wants_sender(shape, e->sender));
	envelope_free(&e);
	return wanted;
}

/* A row of cells for each domain that the index knows is too much for a part of few messages. */
static void add_to_shape(struct shape *shape, const struct spool *s, bool by_name, uint32_t domain,
			 int64_t age_ms, int64_t n)
{
	if (by_name)
		shape_add_name(shape, domains_name(&s->domains, domain), age_ms, n);
	else
		shape_add(shape, domain, age_ms, n);
}

static void count_message(struct spool *s, struct spool_command *c, const struct stub *stub,
			  bool by_name, int64_t now_ms)
{
	/* Ids rise with time, and are made when the message comes. */
	int64_t age_ms = now_ms - ident_time_ms(stub->id);
	struct domain_count one, *of = &one;
	struct shape *shape = c->shape;
	if (age_ms < 0)
		age_ms = 0;
	if (!is_wanted(s, c, stub))
		return;
	if (shape->senders) {
		add_to_shape(shape, s, by_name, domains_sender(stub), age_ms, 1);
		return;
	}
	uint32_t n = domains_rcpts(&s->domains, stub, &of);
	for (uint32_t i = 0; i < n; i++)
		add_to_shape(shape, s, by_name, of[i].domain, age_ms, of[i].rcpts);
}

static void draw_shape(struct spool *s, struct spool_command *c)
{
	struct shape *shape = c->shape;
	int64_t now_ms = clock_wall_ms();
	int n = 0;
	bool by_name = c->limit > 0 && (uint32_t)c->limit < domains_end(&s->domains);
	if (!by_name)
		shape_begin(shape, &s->domains);
	struct catalog_at at = catalog_from(&s->catalog, c->after + 1);
	for (const struct stub *stub; (stub = catalog_step(&s->catalog, &at));) {
		c->more = c->limit > 0 && n == c->limit;
		if (c->more)
			break;
		n++;
		c->after = stub->id;
		if (shape->queues & 1u << stub_queue(stub))
			count_message(s, c, stub, by_name, now_ms);
	}
	if (!by_name)
		shape_end(shape, &s->domains);
	if (!c->unranked)
		shape_rank(shape);
}

/* True: it is not done yet. */
static bool run_command(struct spool *s, struct spool_command *c)
{
	if (c->op == SPOOL_LIST)
		list_messages(s, c);
	else if (c->op == SPOOL_SHOW)
		show_message(s, c);
	else if (c->op == SPOOL_SAMPLE)
		sample_step(s, c);
	else if (c->op == SPOOL_SHAPE)
		draw_shape(s, c);
	else if (c->op == SPOOL_FLUSH && !c->id && !c->domain)
		flush_all(s, c);
	else
		return order_next(s, c);
	return false;
}

/* One whose record is not safe here says that, and need not wait for more. */
static void answer_command(struct spool *s, struct spool_command *c)
{
	if ((c->recorded || c->cancelled > 0) && !c->unsafe)
		copy_wait_order(s, c);
	else
		loop_post(c->reply_to, &c->note);
}

static bool run_commands(struct spool *s)
{
	for (struct spool_command *c; (c = (struct spool_command *)s->commands.first);) {
		if (c->op > SPOOL_SHAPE)
			commit_now(s); /* no message is on the way from one state to another */
		if (run_command(s, c))
			return true;
		note_queue_take(&s->commands);
		answer_command(s, c);
	}
	return false;
}

bool operator_run(struct spool *s)
{
	assert(loop_is_ours(s->loop));
	assert(s->recovered);
	bool more = run_commands(s);
	copy_wait_ask_orders(s);
	return more;
}

void operator_look(struct spool *s, struct spool_command *c)
{
	assert(c->op <= SPOOL_SHAPE);
	run_command(s, c);
	loop_post(c->reply_to, &c->note);
}

static void drop_commands(struct note_queue *q)
{
	for (struct spool_command *c; (c = (struct spool_command *)note_queue_take(q));)
		spool_command_free(&c);
}

void operator_drop(struct spool *s)
{
	drop_commands(&s->commands);
	drop_commands(&s->replication.orders);
}
