/* SPDX-License-Identifier: ISC */
#include "spool/inbox.h"

#include "base/clock.h"
#include "base/conf_note.h"
#include "base/log.h"
#include "spool/adoption.h"
#include "spool/ahead.h"
#include "spool/effect.h"
#include "spool/large_sync.h"
#include "spool/payload.h"
#include "spool/recover.h"
#include "spool/recovered.h"
#include "spool/spool_file.h"
#include "spool/verify.h"
#include "spool/copy_wait.h"
#include "spool/op.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static struct stub *find_active(struct spool *s, uint64_t id)
{
	struct stub *stub = catalog_find(&s->catalog, id);
	assert(stub && stub->state == STUB_ACTIVE && !stub->releasing);
	return stub;
}

/* The operator's order comes before qmgr's wish: then the message waits for no site. */
static void keep_message(struct spool *s, struct stub *stub, struct spool_release *r)
{
	assert(r->site <= SPOOL_SITE_MAX && (r->site || !r->parked));
	const enum stub_wish wish = (enum stub_wish)stub->wish;
	stub->wish = WISH_NONE;
	envelope_remember(r->envelope);
	struct op *op = operator_keep(s, stub, r->envelope, wish);
	r->envelope = NULL;
	if (wish != WISH_NONE)
		return;
	op->site = r->site;
	op->parked = r->parked;
}

/* Who was sending it says so, and has not sent it. The file is read once more before it is put aside: a
 * mistake there must not cost a message that is whole. Nor must a start that could not make safe what it had read: the place of
 * before may be right. */
static bool is_damaged(const struct spool *s, const struct stub *stub)
{
	struct content_file *file = stub->work->file;
	struct envelope *e = NULL;
	if (!file || !atomic_load(&file->damaged) || s->journal.stuck)
		return false;
	bool damaged = verify_message(s->large, stub, &e) != NULL;
	envelope_free(&e);
	return damaged;
}

static void release_message(struct spool *s, struct spool_release *r)
{
	struct stub *stub = find_active(s, r->id);
	assert(!r->delivers || !r->envelope);
	places_give_back(s, stub->site);
	stub->site = 0;
	stub->releasing = true;
	if (stub->wish != WISH_DELETE && is_damaged(s, stub) &&
	    quarantine_message(s, stub, "its content is damaged")) {
		op_finish_delivered(s, stub, r->delivers);
	} else if (r->envelope && stub->wish != WISH_DELETE) {
		keep_message(s, stub, r);
	} else {
		op_finish_delivered(s, stub, r->delivers);
	}
	envelope_free(&r->envelope);
	free(r);
}

static void drop_store(struct spool_store *store)
{
	spool_store_free(&store);
}

static void drop_release(struct spool_release *r)
{
	envelope_free(&r->envelope);
	free(r);
}

static void drop_note(struct spool *s, struct note *note)
{
	struct spool_command *c = (struct spool_command *)note;
	int error;
	switch (note->type) {
	case SPOOL_STORE:
		drop_store((struct spool_store *)note);
		break;
	case SPOOL_NOTE_LARGE_SYNCED:
		drop_store(large_sync_take(s, note, &error));
		break;
	case SPOOL_DELIVERED:
		delivered_free((struct spool_delivered *)note);
		break;
	case SPOOL_RELEASE:
		drop_release((struct spool_release *)note);
		break;
	case SPOOL_COMMAND:
		spool_command_free(&c);
		break;
	case SPOOL_CONF:
		conf_unref(conf_note_take(note));
		break;
	case SPOOL_NOTE_RECOVERED:
		recovered_free((struct recovered *)note);
		break;
	case SPOOL_NOTE_AHEAD:
		ahead_drop(note);
		break;
	default:
		free(note);
	}
}

static void refuse_unsynced(struct spool *s, struct spool_store *store, int error)
{
	log_event(LOG_LEVEL_ERROR, "not_stored", "id", log_id(store->envelope->id), "error",
		  strerror(error), NULL);
	struct op *op = op_add(s, OP_STORE, NULL);
	op->store = store;
	list_remove(&op->link);
	effect_refused(s, op);
}

static struct op *begin_store(struct spool *s, struct spool_store *store)
{
	struct op *op = op_add(s, OP_STORE, NULL);
	op->store = store;
	if (store->file)
		replicate_large(s->replication.keeper, store->envelope->id,
				spool_file_size(store->file), false);
	return op;
}

/* Nobody works on it, and orders leave it alone from now on. False: it is not what was looked at. */
static bool begin_replacing(struct spool *s, struct op *op)
{
	const struct spool_store *store = op->store;
	struct stub *stub = catalog_find(&s->catalog, store->replaces);
	if (!stub || stub->state != STUB_HELD || stub->releasing ||
	    stub->generation != store->generation)
		return false;
	stub->releasing = true;
	op->replaces = stub;
	return true;
}

/* Each names the other, so that a start takes both or neither (replay_end_all()). */
static struct op *begin_with(struct spool *s, struct spool_store *store)
{
	struct op *with = begin_store(s, store->with);
	with->store->promised = store->promised;
	with->partner = store->envelope->id;
	return with;
}

/* NULL: nothing is in the queue that bears its id. */
static const struct stub *find_known(const struct spool *s, const struct spool_store *store)
{
	bool may_be = store->taken || store->adopted;
	return may_be ? catalog_find(&s->catalog, store->envelope->id) : NULL;
}

/* A file that is refused is removed by its name: that of the message which is there, with the same content. */
static void leave_file(const struct spool *s, struct spool_store *store)
{
	const struct stub *known = store->file ? find_known(s, store) : NULL;
	if (known && known->large)
		spool_file_leave(&store->file);
}

/* Where the message has files of its own, these are on stable storage now. */
static void add_store(struct spool *s, struct spool_store *store)
{
	bool known = find_known(s, store);
	struct op *with = store->with && !known ? begin_with(s, store) : NULL;
	if (with)
		store->with = NULL;
	struct op *op = begin_store(s, store);
	op->partner = with ? with->store->envelope->id : 0;
	gather_came(&s->gather, clock_steady_us(), store->posted_us, store->answered_us,
		    store->file != NULL);
	store->outdated = store->replaces && !begin_replacing(s, op);
	if (!known && !store->outdated)
		return;
	/* The message is in the queue: it was taken, and only its file could not be removed, or adopted; or it comes too late. */
	list_remove(&op->link);
	effect_refused(s, op);
}

/* Whoever reads a message believes what the envelope says of the size of its content. */
static bool is_of_its_size(const struct spool_store *store)
{
	return store->envelope->size ==
	       (store->file ? spool_file_size(store->file) : store->content->size);
}

static void take_store(struct spool *s, struct spool_store *store)
{
	const struct spool_store *with = store->with;
	assert((store->content != NULL) != (store->file != NULL));
	assert(is_of_its_size(store) && (!with || is_of_its_size(with)));
	assert(!with || (!with->with && !with->reply_to && !with->taken));
	assert(!store->replaces || (!with && !store->promised && !store->taken && !store->adopted));
	if (store->file)
		spool_file_sum(store->file, store->envelope);
	if (with && with->file)
		spool_file_sum(with->file, with->envelope);
	if (store->file || (with && with->file))
		large_sync_give(s, store);
	else
		add_store(s, store);
}

static void large_synced(struct spool *s, struct note *note)
{
	int error;
	struct spool_store *store = large_sync_take(s, note, &error);
	leave_file(s, store);
	if (error)
		refuse_unsynced(s, store, error);
	else
		add_store(s, store);
}

void inbox_receive(void *owner, struct note *note)
{
	struct spool *s = owner;
	if (s->closing) {
		drop_note(s, note);
		return;
	}
	switch (note->type) {
	case SPOOL_STORE:
		take_store(s, (struct spool_store *)note);
		break;
	case SPOOL_NOTE_LARGE_SYNCED:
		large_synced(s, note);
		break;
	case SPOOL_DELIVERED: {
		struct spool_delivered *d = (struct spool_delivered *)note;
		op_add(s, OP_DELIVERED, find_active(s, d->id))->delivered = d;
		break;
	}
	case SPOOL_RELEASE:
		release_message(s, (struct spool_release *)note);
		break;
	case SPOOL_CREDIT:
		s->credit += ((struct spool_credit *)note)->n;
		free(note);
		break;
	case SPOOL_ADOPTED:
		adoption_release(s);
		free(note);
		break;
	case SPOOL_DISOWN:
		adoption_disown(s, (struct spool_disown *)note);
		break;
	case SPOOL_UNPARK:
		parked_order(&s->parked, (struct spool_unpark *)note);
		break;
	case SPOOL_COMMAND:
		note_queue_put(&s->commands, note);
		break;
	case SPOOL_CONF:
		conf_note_use(note, &s->conf);
		break;
	case SPOOL_NOTE_RECOVERED:
		recover_merge(s, (struct recovered *)note);
		break;
	case SPOOL_NOTE_AHEAD:
		ahead_take(s, note);
		break;
	case SPOOL_REPLICATED:
	case SPOOL_REPLICA_AWAY:
		copy_wait_receive(s, note);
		break;
	case SPOOL_NOTE_STOP:
		assert(!s->stop);
		s->stop = note;
		break;
	default:
		assert(0 && "a note that is not for the spool");
	}
}
