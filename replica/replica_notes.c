/* SPDX-License-Identifier: ISC */
#include "replica/replica_core.h"

#include "base/log.h"
#include "base/mem.h"
#include "spool/disk.h"
#include "spool/replicate.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A stop waits no longer for what is missing; and one after which another node is to have the queue. */
enum { STOP_MS = 5000, HAND_OVER_MS = 30000 };

/* So long a beat is borne by what is sent. One that can't be noted, in so many tries of a tick each, is gone on without for as long. */
enum { BEAT_MS = 2000, BEAT_TRIES = 10 };

static void add_segment(struct replica *r, struct replicate *n)
{
	struct copy_key key = {.of = n->of};
	struct copy *f = copies_add(&r->copies, key, n->older ? COPY_OLDER : COPY_LOG);
	f->file = n->file;
	n->file = NULL;
	if (!n->older && (r->first == 0 || n->of < r->first))
		r->first = n->of;
	copy_is(&r->copies, f, n->end, 0, 0);
}

static void segment_grew(struct replica *r, const struct replicate *n)
{
	struct copy *f = copies_find(&r->copies, n->of, false);
	assert(f);
	copy_is(&r->copies, f, n->end > f->end ? n->end : f->end, f->sent, f->acked);
}

/* The part under way is no longer what is there, and comes before what is. Its end is sent, too: the stream has what was
 * withdrawn, and keeps that behind it. */
static void segment_cut(struct replica *r, const struct replicate *n)
{
	struct copy *f = copies_find(&r->copies, n->of, false);
	assert(f && n->n == sizeof f->ending);
	replica_resend(r);
	memcpy(f->ending, n->bytes, sizeof f->ending);
	copy_cut(&r->copies, f, n->end);
}

/* Of one of a former start. What can't be looked at now is looked at when it is read: one byte is missing until
 * then. False: it has gone by now. */
static bool large_size(const struct replica *r, uint64_t id, uint64_t *size)
{
	int64_t changed_ms;
	int fd = pump_open_large(r, id);
	if (fd < 0 && errno == ENOENT)
		return false;
	if (fd < 0 || disk_size(fd, size, &changed_ms) != 0)
		*size = 0;
	disk_close(fd);
	return true;
}

/* A message that was given back is taken once more, so that there is another file of that name. The purge of the former is not
 * to take this one's place in the stream: it is left out, or waited for where it has begun. True: it has. */
static bool forget_former(struct replica *r, struct copy_key key, bool *there)
{
	struct copy *former = copies_find(&r->copies, key.of, key.large);
	struct order *gone = orders_gone(&r->orders, key);
	bool purging = gone && gone->under_way;
	assert(!gone || (former && former->gone) || purging);
	*there = former && former->there && !purging;
	if (gone && !purging)
		orders_forget_gone(&r->orders, gone);
	if (former && former->under_way > 0)
		replica_resend(r); /* what is on its way of it is none of this one's */
	if (former)
		copies_remove(&r->copies, former);
	return purging;
}

static void add_large(struct replica *r, const struct replicate *n)
{
	struct copy_key key = {.of = n->of, .large = 1};
	uint64_t size = n->end;
	if (n->older && !large_size(r, n->of, &size))
		return;
	bool there, purging = forget_former(r, key, &there);
	struct copy *f = copies_add(&r->copies, key, n->older ? COPY_OLDER : COPY_LARGE);
	f->there = there;
	f->purging = purging;
	copy_is(&r->copies, f, size + 1, 0, 0);
}

static void add_order(struct replica *r, enum order_kind kind, struct copy_key key,
		      const void *bytes, size_t len)
{
	struct order *o = orders_add(&r->orders, kind, key);
	buf_append(&o->bytes, bytes, len);
}

static void add_marks(struct replica *r, const struct replicate *n)
{
	struct copy_key key = {.of = n->of};
	for (uint32_t at = 0; at < n->n; at += REPLICA_PIECE)
		add_order(r, ORDER_MARKS, key, n->bytes + at,
			  n->n - at < REPLICA_PIECE ? n->n - at : REPLICA_PIECE);
}

static void hear_gone(struct replica *r, const struct replicate *n, bool large)
{
	struct copy_key key = {.of = n->of, .large = large};
	struct copy *f = copies_find(&r->copies, n->of, large);
	if (!f)
		return;
	const bool withdrawn = large && f->acked < f->end;
	if (!large)
		orders_forget_marks(&r->orders, key);
	if (f->there) {
		copy_gone(&r->copies, f);
		add_order(r, ORDER_GONE, key, NULL, 0);
	} else {
		assert(f->under_way == 0);
		copies_remove(&r->copies, f);
	}
	/* The envelope that names it may still be on its way: an adopter would take that, or what was stored with it. */
	if (withdrawn)
		copies_rush(&r->copies);
}

static void add_barrier(struct replica *r, uint64_t number)
{
	const struct list *last = r->barriers.prev;
	assert(last == &r->barriers || list_entry(last, struct barrier, link)->number < number);
	struct barrier *t = mem_zalloc(sizeof *t);
	t->number = number;
	t->since_ms = r->loop->now_ms;
	goals_set(&t->goals, &r->copies, COPY_OLDER);
	list_append(&r->barriers, &t->link);
}

/* Starts and deliveries without the stream lie in the log before this. */
static void hear_starts_wait(struct replica *r, uint64_t turn)
{
	if (turn != r->turns)
		return; /* it has been told otherwise since */
	goals_fini(&r->unheard);
	goals_set(&r->unheard, &r->copies, COPY_OLDER);
	r->heard = true;
}

static void complete_later(struct replica *r)
{
	orders_add(&r->orders, ORDER_COMPLETE, (struct copy_key){.of = 0});
	r->completing = true;
}

/* One of a queue of hundreds of gigabytes does not fit, and without one all segments are read. */
static void keep_checkpoint(struct replica *r, const struct replicate *n)
{
	buf_clear(&r->checkpoint);
	if (n->n <= REPLICA_PIECE)
		buf_append(&r->checkpoint, n->bytes, n->n);
}

static void hear_spool(struct replica *r, struct replicate *n)
{
	switch ((enum replicate_note)n->note.type) {
	case REPLICATE_SEGMENT:
		add_segment(r, n);
		break;
	case REPLICATE_WRITTEN:
		segment_grew(r, n);
		break;
	case REPLICATE_CUT:
		segment_cut(r, n);
		break;
	case REPLICATE_MARKED:
		add_marks(r, n);
		break;
	case REPLICATE_CHECKPOINT:
		keep_checkpoint(r, n);
		add_order(r, ORDER_CHECKPOINT, (struct copy_key){.of = 0}, n->bytes,
			  n->n <= REPLICA_PIECE ? n->n : 0);
		break;
	case REPLICATE_GONE:
		hear_gone(r, n, false);
		break;
	case REPLICATE_LARGE:
		add_large(r, n);
		break;
	case REPLICATE_LARGE_GONE:
		hear_gone(r, n, true);
		break;
	case REPLICATE_KNOWN:
		assert(!r->known);
		r->known = true;
		keep_checkpoint(r, n);
		complete_later(r);
		break;
	case REPLICATE_ASK:
		add_barrier(r, n->of);
		break;
	case REPLICATE_STARTS_WAIT:
		hear_starts_wait(r, n->of);
		break;
	default:
		assert(0 && "a note that is not for the copy");
	}
}

static void from_spool(struct replica *r, struct replicate *n)
{
	if (!r->closing)
		hear_spool(r, n);
	content_file_unref(n->file);
	free(n);
}

/* Units of before are there no more, or not all: nobody knows which. */
static void begin_again(struct replica *r)
{
	assert(r->flight.n == 0);
	copies_again(&r->copies, true);
	orders_forget_numbers(&r->orders);
	r->begun = 0;
	r->complete = false; /* unless it is still to be said: then it need not be twice */
	r->shorter = false;
	r->acked = r->acked_number = r->kept = r->anchor = 0;
	r->spare = 0;
}

/* Something that we have left in the stream lies before its beginning. */
static bool has_gone(const struct replica *r, uint64_t first)
{
	return first > r->kept || (r->anchor && first > r->anchor);
}

/* An engine that had not synced what it acknowledged comes back without it. */
static bool has_lost_some(struct replica *r, const struct nats_link_note *n)
{
	if (!r->shorter && n->last >= r->acked && !has_gone(r, n->first) && n->lost <= r->lost)
		return false;
	r->lost = n->lost;
	log_event(LOG_LEVEL_ERROR, "replica", "state", "shorter", "epoch",
		  log_number((int64_t)r->epoch), "reason",
		  "NATS has lost what it had acknowledged: all is sent again", "acknowledged",
		  log_number((int64_t)r->acked), "there", log_number((int64_t)n->last), NULL);
	return true;
}

static void replica_up(struct replica *r, const struct nats_link_note *n)
{
	assert(r->phase == PHASE_SETTING_UP && r->flight.n == 0);
	r->phase = PHASE_RUNNING;
	r->epoch = n->epoch;
	r->progress_ms = r->loop->now_ms;
	if (n->mended)
		log_event(LOG_LEVEL_WARNING, "replica", "state", "mended", "epoch",
			  log_number((int64_t)r->epoch), "reason",
			  "the stream had limits that refuse or remove messages: they are lifted, "
			  "and all is sent again",
			  NULL);
	if (r->begun && (n->fresh || n->mended || has_lost_some(r, n)))
		begin_again(r);
	r->lost = n->lost;
	r->says_alone = n->alone;
	if (r->known && !r->complete && !r->completing)
		complete_later(r);
	if (trouble_up(&r->trouble, r->loop->now_ms))
		replica_log_up(r);
}

static void set_up(struct replica *r, const struct nats_link_note *n)
{
	assert(r->phase == PHASE_SETTING_UP);
	if (n->fenced) {
		r->phase = PHASE_FENCED;
		atomic_store(&r->fenced, true);
		log_event(LOG_LEVEL_ERROR, "replica", "state", "fenced", "epoch",
			  log_number((int64_t)r->epoch), "reason",
			  "another node has taken this one's queue", NULL);
	} else if (*n->error) {
		replica_failed(r, n->error);
		replica_again(r);
	} else {
		replica_up(r, n);
	}
}

/* Somebody else has changed it; where NATS only does not answer, what is sent next finds that out. */
static void hear_look(struct replica *r, const struct nats_link_note *n)
{
	const bool lost = n->last < n->acked || has_gone(r, n->first) || n->lost > r->lost;
	assert(r->looking);
	r->looking = false;
	if (r->phase != PHASE_RUNNING || !r->kept || *n->error)
		return;
	if (n->fresh)
		replica_failed(r, "the stream is there no more");
	else if (n->mended)
		replica_failed(r, "the stream has limits that refuse or remove messages");
	else if (lost)
		replica_failed(r, "NATS has lost what it had acknowledged");
}

static void hear_purged(struct replica *r, const struct nats_link_note *n)
{
	struct order *o = orders_first(&r->orders);
	if (!o || !o->under_way)
		return; /* asked for before a failure: it is asked for again */
	struct copy *f =
		o->kind == ORDER_GONE ? copies_find(&r->copies, o->key.of, o->key.large) : NULL;
	bool next_waits = f && f->purging;
	o->under_way = false;
	if (next_waits)
		copy_purged(&r->copies, f);
	if (*n->error)
		replica_failed(r, n->error);
	if (*n->error && !next_waits)
		return; /* it is asked for again */
	if (o->kind == ORDER_ROOM)
		r->made_room = r->flight.number;
	if (f && !next_waits)
		copies_remove(&r->copies, f);
	orders_done(&r->orders);
}

/* A message that was sent later lies behind those that were acknowledged before, or these have been lost. */
static void take_acknowledgement(struct replica *r, const struct nats_link_note *n)
{
	if (n->number > r->acked_number && n->sequence <= r->acked) {
		r->shorter = true;
		replica_failed(r, "NATS has lost what it had acknowledged");
		return;
	}
	if (n->sequence > r->acked) {
		r->acked = n->sequence;
		r->acked_number = n->number;
	}
	flight_acknowledged(&r->flight, n->number, n->sequence);
}

/* Messages that were sent since room was made have none, too; or it would not help. Then nothing that the stream is told frees any. */
static void hear_full(struct replica *r, uint64_t number)
{
	if (r->room != ROOM_IS_THERE && number <= r->made_room)
		return;
	r->alone |= r->room == ROOM_FOR_ALL || !pump_fits(r);
	pump_make_room(r);
	if (r->told_alone)
		replica_tell_spool(r, true); /* what is dead by then need not be sent */
}

static void take_refusal(struct replica *r, const struct nats_link_note *n)
{
	if (flight_is_spare(&r->flight, n->number)) {
		flight_forget(&r->flight, n->number);
		pump_no_spare(r);
		if (r->told_alone)
			replica_tell_spool(r, true);
		return;
	}
	if (n->full)
		hear_full(r, n->number);
	replica_failed(r, n->error);
}

/* Without it all that is sent would bear one that a backup may have, so that it waits for some tries. */
static void hear_beat(struct replica *r, uint32_t beat)
{
	const bool noted = beat > r->own.beat;
	assert(r->beating);
	r->beating = false;
	r->beat_tries = noted || r->beat_tries == BEAT_TRIES ? 0 : r->beat_tries + 1;
	if (r->beat_tries > 0)
		return;
	r->beat_ms = r->loop->now_ms + BEAT_MS;
	if (noted)
		pump_beat(r, beat);
}

/* No answer comes to that. The first says what it is about: what follows from it is denied, too. */
static void hear_denial(struct replica *r, const char *what)
{
	if (!r->denied)
		r->denied = mem_strdup(what);
	if (r->phase == PHASE_RUNNING)
		replica_failed(r, what);
}

static void hear_link(struct replica *r, struct nats_link_note *n)
{
	switch ((enum nats_link_note_type)n->note.type) {
	case NATS_LINK_SET_UP:
		set_up(r, n);
		break;
	case NATS_LINK_DOWN:
		if (r->phase == PHASE_RUNNING)
			replica_failed(r, "the connection was lost");
		break;
	case NATS_LINK_BACK:
		if (r->phase == PHASE_RUNNING)
			replica_failed(r, "");
		break;
	case NATS_LINK_DENIED:
		hear_denial(r, n->error);
		break;
	case NATS_LINK_ACK:
		if (*n->error)
			take_refusal(r, n);
		else
			take_acknowledgement(r, n);
		break;
	case NATS_LINK_BEAT:
		hear_beat(r, n->beat);
		break;
	case NATS_LINK_PURGED:
		hear_purged(r, n);
		break;
	case NATS_LINK_LOOKED:
		hear_look(r, n);
		break;
	}
}

static void from_link(struct replica *r, struct nats_link_note *n)
{
	if (!r->closing)
		hear_link(r, n);
	free(n);
}

static int64_t stop_patience_ms(const struct replica *r)
{
	int64_t most_ms = r->conf->cluster.replicate_timeout;
	if (r->stop->hands_over)
		return HAND_OVER_MS;
	return most_ms < STOP_MS ? most_ms : STOP_MS;
}

void replica_notes_receive(void *owner, struct note *note)
{
	struct replica *r = owner;
	if (note->type == REPLICA_NOTE_STOP) {
		assert(!r->stop);
		r->stop = (struct replica_stop *)note;
		r->stop_ms = r->loop->now_ms + stop_patience_ms(r);
	} else if (note->type == REPLICA_NOTE_EPOCH) {
		r->own = ((struct replica_begin *)note)->own;
		r->row = ((struct replica_begin *)note)->row;
		r->epoch = r->own.epoch;
		r->beat_ms = r->loop->now_ms; /* a backup since this epoch was noted has its beat */
		loop_timer_in(r->loop, &r->again, 0);
		free(note);
	} else if (note->type >= NATS_LINK_SET_UP)
		from_link(r, (struct nats_link_note *)note);
	else
		from_spool(r, (struct replicate *)note);
}
