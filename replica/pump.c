/* SPDX-License-Identifier: ISC */
#include "replica/replica_core.h"

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/ident.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "spool/checkpoint.h"
#include "spool/disk.h"
#include "spool/replicate.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

/* Under way at once. What was there at the start takes a part of it, so that new mail need not wait for
 * megabytes of that. */
enum { FLIGHT_BYTES = 8 << 20, FLIGHT_BYTES_OLDER = 3 << 20, FLIGHT_MESSAGES = 512 };

/* The other half is for what is written meanwhile. */
enum { ROOM_BYTES = SPARES * REPLICA_PIECE / 2 };

enum { SPARE_MS = 10000 }; /* until room is asked for again that is not there */

enum { UNREAD_MS = 1000 }; /* until what could not be read is tried again */

static char *payload_of(struct replica *r)
{
	return r->message + REPLICA_HEAD;
}

/* Its payload stands in r->message. */
static bool send_message(struct replica *r, struct replica_head *h, const struct flown *what)
{
	struct flown m = *what;
	assert(r->phase == PHASE_RUNNING);
	assert(h->length <= REPLICA_PIECE);
	assert(r->begun || h->type == REPLICA_BEGIN || h->type == REPLICA_SPARE);
	char *subject = replica_subject(r->node, r->epoch, h->type, h->of);
	size_t len = REPLICA_HEAD + h->length;
	h->epoch = r->epoch;
	h->beat = r->own.beat;
	h->number = m.number = ++r->flight.number;
	h->crc = crc32c(0, payload_of(r), h->length);
	replica_head_put((uint8_t *)r->message, h);
	m.type = h->type;
	m.bytes = len;
	m.sent_ms = clock_steady_ms();
	const char *why = nats_link_publish(r->link, subject, m.number, r->message, len);
	free(subject);
	if (why) {
		replica_failed(r, log_text("can't be written to: %s", why));
		return false;
	}
	flight_add(&r->flight, &m);
	r->sent |= h->type != REPLICA_BEAT && h->type != REPLICA_SPARE;
	metrics_add(METRIC_replica_messages, 1);
	metrics_add(METRIC_replica_bytes, (int64_t)len);
	return true;
}

static bool send_state(struct replica *r, enum replica_type type, uint64_t of,
		       const struct buf *bytes)
{
	struct replica_head h = {.type = type, .of = of};
	if (bytes && buf_len(bytes) > 0) {
		assert(buf_len(bytes) <= REPLICA_PIECE);
		h.length = (uint32_t)buf_len(bytes);
		memcpy(payload_of(r), buf_data(bytes), h.length);
	}
	return send_message(r, &h, &(struct flown){.to = 0});
}

int pump_open_large(const struct replica *r, uint64_t id)
{
	char name[IDENT_TEXT];
	char *path = mem_printf("%s/large/%s", r->conf->spool, ident_text(id, name));
	int fd = disk_open(AT_FDCWD, path, O_RDONLY);
	int error = errno;
	free(path);
	errno = error;
	return fd;
}

static int large_of(const struct replica *r, struct copy *f)
{
	if (f->fd < 0)
		f->fd = pump_open_large(r, f->key.of);
	return f->fd;
}

/* So far it is read from its file. */
static uint64_t end_in_file(const struct copy *f)
{
	uint64_t end = f->class == COPY_LOG ? f->cleared : f->end - f->key.large;
	return f->cut && end > f->cut ? f->cut : end;
}

enum piece { PIECE_READ, PIECE_GONE, PIECE_UNREADABLE };

/* Large content that has gone is named as such soon; a segment that is shorter was cut. Anything else says nothing
 * of what should be there. */
static enum piece read_piece(struct replica *r, struct copy *f, struct replica_head *h)
{
	int64_t changed_ms;
	int fd = f->key.large ? large_of(r, f) : f->file->fd;
	if (fd < 0 && errno == ENOENT)
		return PIECE_GONE;
	if (fd < 0 || disk_size(fd, &h->size, &changed_ms) != 0)
		return PIECE_UNREADABLE;
	if (f->key.large && f->sent == 0 && f->end != h->size + 1)
		copy_is(&r->copies, f, h->size + 1, 0, 0); /* it could not be looked at before */
	if (f->cut && f->sent == f->cut) {
		h->length = sizeof f->ending;
		memcpy(payload_of(r), f->ending, h->length);
		return PIECE_READ;
	}
	/* Of large content the last unit is that it has ended. */
	uint64_t size = end_in_file(f);
	assert(f->sent <= size);
	uint64_t len = size - f->sent < REPLICA_PIECE ? size - f->sent : REPLICA_PIECE;
	ssize_t n = disk_read(fd, payload_of(r), len, f->sent);
	h->length = (uint32_t)len;
	return n < 0 ? PIECE_UNREADABLE : n == (ssize_t)len ? PIECE_READ : PIECE_GONE;
}

/* Others may be: they are sent before it is tried again. */
static void put_off(struct replica *r, struct copy *f)
{
	char *why = mem_printf("%s can't be read: %s", f->key.large ? "large content" : "a segment",
			       strerror(errno));
	r->unread_ms[f->class == COPY_OLDER] = r->loop->now_ms + UNREAD_MS;
	copies_last(&r->copies, f);
	replica_complain(r, why);
	free(why);
}

/* The next of what is missing. False: there is nothing to send of it now. */
static bool send_piece(struct replica *r, struct copy *f)
{
	const bool large = f->key.large;
	struct replica_head h = {.type = REPLICA_LOG, .of = f->key.of, .offset = f->sent};
	enum piece piece = read_piece(r, f, &h);
	if (piece == PIECE_UNREADABLE)
		put_off(r, f);
	if (piece == PIECE_GONE)
		copy_is(&r->copies, f, f->sent, f->sent, f->acked);
	if (piece != PIECE_READ)
		return false;
	uint64_t len = h.length;
	if (large) {
		h.type = len > 0 ? REPLICA_LARGE : REPLICA_LARGE_END;
		h.size = f->end - 1;
	}
	uint64_t to = f->sent + len + (h.type == REPLICA_LARGE_END);
	if (!send_message(r, &h, &(struct flown){.key = f->key, .to = to}))
		return false;
	f->under_way++;
	f->there = true;
	copy_is(&r->copies, f, f->end, to, f->acked);
	return true;
}

static bool has_room(const struct replica *r, bool older)
{
	return r->phase == PHASE_RUNNING && r->flight.n < FLIGHT_MESSAGES && !r->unread_ms[0] &&
	       (!older || !r->unread_ms[1]) &&
	       r->flight.bytes < (older ? FLIGHT_BYTES_OLDER : FLIGHT_BYTES);
}

static void put_gone(void *text, struct copy_key key)
{
	if (!key.large)
		checkpoint_put_gone(text, key.of);
}

/* A segment that is gone here is in the stream until its purge is done, and the checkpoint may pass over what says that its messages
 * are dead. */
static bool send_checkpoint(struct replica *r, enum replica_type type, const struct buf *bytes)
{
	struct buf text = {0};
	buf_append(&text, buf_data(bytes), buf_len(bytes));
	if (orders_any_gone(&r->orders) && checkpoint_open_text(&text)) {
		orders_each_gone(&r->orders, put_gone, &text);
		checkpoint_close_text(&text);
	}
	if (buf_len(&text) > REPLICA_PIECE)
		buf_clear(&text); /* all is read */
	bool sent = send_state(r, type, 0, &text);
	buf_fini(&text);
	return sent;
}

static bool send_order(struct replica *r, const struct order *o)
{
	struct replica_head h = {.type = REPLICA_MARKS, .of = o->key.of};
	if (o->kind == ORDER_COMPLETE)
		return send_checkpoint(r, REPLICA_COMPLETE, &r->checkpoint);
	if (o->kind == ORDER_CHECKPOINT)
		return send_checkpoint(r, REPLICA_CHECKPOINT, &o->bytes);
	assert(o->kind == ORDER_MARKS && buf_len(&o->bytes) <= REPLICA_PIECE);
	h.length = (uint32_t)buf_len(&o->bytes);
	memcpy(payload_of(r), buf_data(&o->bytes), h.length);
	return send_message(r, &h, &(struct flown){.to = 0});
}

static void forget_gone(struct replica *r)
{
	struct order *o = orders_first(&r->orders);
	struct copy *f = copies_find(&r->copies, o->key.of, o->key.large);
	if (f)
		copies_remove(&r->copies, f);
	orders_done(&r->orders);
}

static void purge_file(struct replica *r, struct order *o)
{
	assert(o->kind == ORDER_GONE && !o->under_way);
	const struct copy *f = copies_find(&r->copies, o->key.of, o->key.large);
	if (!f || !f->there) {
		forget_gone(r);
		return;
	}
	if (f->under_way > 0)
		return; /* it would come after the purge */
	char *subject = replica_subject(r->node, r->epoch,
					o->key.large ? REPLICA_LARGE : REPLICA_LOG, o->key.of);
	o->under_way = true;
	nats_link_purge(r->link, subject, 0, 0);
	free(subject);
}

static void purge_before(struct replica *r, struct order *o)
{
	assert(o->kind == ORDER_SINCE || o->kind == ORDER_NEWEST);
	/* Nothing lies before the first; and a purge up to it, the server takes for one of all there is. */
	if (o->before <= 1) {
		orders_done(&r->orders);
		return;
	}
	char *state = replica_subject(r->node, r->epoch, REPLICA_COMPLETE, 0);
	o->under_way = true;
	nats_link_purge(r->link, o->kind == ORDER_NEWEST ? state : "", o->before, 0);
	free(state);
}

/* Those of former starts too. */
static void purge_spare(struct replica *r, struct order *o)
{
	char token[REPLICA_TOKEN];
	char *spare = mem_printf("sluice.%s.*" REPLICA_SPARE_END, replica_token(r->node, token));
	o->under_way = true;
	nats_link_purge(r->link, spare, 0, o->keep);
	free(spare);
}

static void run_orders(struct replica *r)
{
	struct order *o;
	while (r->phase == PHASE_RUNNING && (o = orders_first(&r->orders)) && !o->under_way &&
	       (r->complete || o->kind <= ORDER_COMPLETE) && orders_may(&r->orders, &r->copies)) {
		int before = r->orders.n;
		if (o->kind == ORDER_GONE)
			purge_file(r, o);
		else if (o->kind == ORDER_ROOM)
			purge_spare(r, o);
		else if (order_is_purge(o->kind))
			purge_before(r, o);
		else
			o->under_way = send_order(r, o);
		if (r->orders.n == before)
			break;
	}
}

/* Where clients do not wait, new mail would take that room, too: it is for what lets something go. */
bool pump_fits(const struct replica *r)
{
	const struct conf_cluster *c = &r->conf->cluster;
	bool refuses = c->replicate != REPLICATE_ASYNC && !c->degrade;
	return copies_lag(&r->copies) <= ROOM_BYTES && (refuses || orders_any_gone(&r->orders));
}

void pump_no_spare(struct replica *r)
{
	r->spare_ms = r->loop->now_ms + SPARE_MS;
}

/* Marks and purges of what is dead come in then, and it goes. Rows of nodes lie beside the streams: without some room for
 * them no node could prove that it lives. */
void pump_make_room(struct replica *r)
{
	enum replica_room room = pump_fits(r) ? ROOM_FOR_ALL : ROOM_FOR_OTHERS;
	int keep = room == ROOM_FOR_ALL ? 0 : SPARES - 1;
	bool any = r->spare > keep || r->room == ROOM_IS_THERE || room < r->room;
	assert(loop_is_ours(r->loop));
	pump_no_spare(r);
	r->room = room;
	if (!any)
		return;
	r->made_room = UINT64_MAX;
	r->spare = r->spare < keep ? r->spare : keep;
	r->anchor = 0;
	orders_add(&r->orders, ORDER_ROOM, (struct copy_key){.of = 0})->keep = (uint64_t)keep;
}

/* When all else is there, and nothing waits; or when that waits for it. */
static bool wants_spare(const struct replica *r)
{
	bool idle = r->complete && r->orders.n == 0 && copies_lag(&r->copies) == 0;
	return r->phase == PHASE_RUNNING && r->flight.n == 0 &&
	       (idle || r->room == ROOM_FOR_OTHERS) && r->spare < SPARES &&
	       r->loop->now_ms >= r->spare_ms;
}

static void send_spare(struct replica *r)
{
	struct replica_head h = {.type = REPLICA_SPARE, .length = REPLICA_PIECE};
	memset(payload_of(r), 0, REPLICA_PIECE);
	send_message(r, &h, &(struct flown){.to = 0});
}

/* Content that an envelope names is there before it is: of two that are sent, the second may come in and the first not. The
 * log goes on as far as it had come when that large content was looked at, so that it has its turn whatever follows. */
static void clear_log(struct replica *r)
{
	while (goals_reached(&r->named, &r->copies) && copies_clear(&r->copies)) {
		goals_fini(&r->named);
		goals_set(&r->named, &r->copies, COPY_LOG);
	}
}

static void send_missing(struct replica *r, bool older)
{
	struct copy *f;
	while (has_room(r, older) && (f = copies_missing(&r->copies, older)))
		send_piece(r, f);
}

/* Until then all that is sent is refused. */
static bool makes_room(const struct replica *r)
{
	const struct order *o = orders_first(&r->orders);
	return o && o->kind == ORDER_ROOM;
}

static bool wants_to_send(struct replica *r)
{
	return !r->begun || r->orders.n > 0 || copies_missing(&r->copies, true);
}

/* The first that is sent after a pause would bear a beat that a backup may have, which was made in that pause: the next
 * is noted before. */
static bool waits_for_beat(struct replica *r)
{
	if (r->phase != PHASE_RUNNING || r->loop->now_ms < r->beat_ms || !wants_to_send(r))
		return false;
	if (!r->beating && r->beat_tries == 0)
		replica_note_beat(r);
	return true;
}

/* The log has become less since, as what is dead here need not be sent; or there is room that nobody has promised. */
static bool log_waits(struct replica *r)
{
	if (r->room != ROOM_FOR_OTHERS || r->phase != PHASE_RUNNING)
		return false;
	if (pump_fits(r))
		pump_make_room(r);
	else if (wants_spare(r))
		send_spare(r);
	return r->room == ROOM_FOR_OTHERS;
}

/* Until it is known to be there nothing else is sent: all before it would count for nobody, and go when the rest is there. */
static void begin_epoch(struct replica *r)
{
	if (r->flight.n == 0)
		send_state(r, REPLICA_BEGIN, r->first, NULL);
}

void pump(struct replica *r)
{
	assert(loop_is_ours(r->loop));
	if (makes_room(r))
		run_orders(r);
	clear_log(r);
	if (makes_room(r) || log_waits(r) || makes_room(r) || waits_for_beat(r))
		return;
	if (r->phase == PHASE_RUNNING && !r->begun) {
		begin_epoch(r);
		return;
	}
	send_missing(r, false);
	send_missing(r, true);
	run_orders(r);
	if (wants_spare(r))
		send_spare(r);
}

void pump_beat(struct replica *r, uint32_t beat)
{
	assert(loop_is_ours(r->loop));
	r->own.beat = beat;
	if (r->phase == PHASE_RUNNING && r->begun)
		send_state(r, REPLICA_BEAT, 0, NULL);
}

static void purge_later(struct replica *r, enum order_kind kind, uint64_t before)
{
	orders_add(&r->orders, kind, (struct copy_key){.of = 0})->before = before;
}

/* The head of the queue of orders is there. */
static void order_sent(struct replica *r, const struct flown *m)
{
	const struct order *o = orders_first(&r->orders);
	if (m->type == REPLICA_COMPLETE) {
		r->complete = true;
		r->completing = false;
		r->kept = m->sequence;
		log_event(LOG_LEVEL_INFO, "replica", "state", "complete", "epoch",
			  log_number((int64_t)r->epoch), NULL);
		purge_later(r, ORDER_SINCE, r->begun);
	} else if (m->type == REPLICA_CHECKPOINT) {
		r->kept = m->sequence;
		purge_later(r, ORDER_NEWEST, m->sequence);
	}
	assert(o && o->under_way && !order_is_purge(o->kind));
	assert((m->type == REPLICA_COMPLETE) == (o->kind == ORDER_COMPLETE));
	assert((m->type == REPLICA_CHECKPOINT) == (o->kind == ORDER_CHECKPOINT));
	orders_done(&r->orders);
}

static void note_arrival(struct replica *r, const struct flown *m)
{
	struct copy *f = copies_find(&r->copies, m->key.of, m->key.large);
	switch (m->type) {
	case REPLICA_BEGIN:
		r->begun = r->kept = m->sequence;
		break;
	case REPLICA_LOG:
	case REPLICA_LARGE:
	case REPLICA_LARGE_END:
		if (!f)
			break;
		assert(f->under_way > 0);
		f->under_way--;
		if (!f->gone)
			copy_is(&r->copies, f, f->end, f->sent, m->to);
		break;
	case REPLICA_MARKS:
	case REPLICA_COMPLETE:
	case REPLICA_CHECKPOINT:
		order_sent(r, m);
		break;
	case REPLICA_BEAT:
		break;
	case REPLICA_SPARE:
		r->spare++;
		assert(r->spare <= SPARES);
		r->anchor = r->anchor ? r->anchor : m->sequence;
		r->room = r->spare < SPARES ? r->room : ROOM_IS_THERE;
		break;
	}
}

static void answer_barriers(struct replica *r)
{
	uint64_t reached = 0;
	list_each_entry (struct barrier, t, link, &r->barriers) {
		if (!goals_reached(&t->goals, &r->copies))
			break;
		reached = t->number;
		list_remove(&t->link);
		goals_fini(&t->goals);
		free(t);
	}
	if (!reached)
		return;
	struct replicate *answer = mailbox_note(sizeof *answer, SPOOL_REPLICATED);
	answer->of = reached;
	loop_post(spool_loop(r->spool), &answer->note);
}

void pump_acknowledged(struct replica *r)
{
	struct flown m;
	bool any = false;
	assert(loop_is_ours(r->loop));
	while (flight_take(&r->flight, &m)) {
		note_arrival(r, &m);
		any = true;
	}
	if (any) {
		r->progress_ms = r->loop->now_ms;
		r->again_ms = 0;
	}
	answer_barriers(r);
}
