/* SPDX-License-Identifier: ISC */
#include "replica/nats_link.h"

#include "base/magic.h"
#include "base/mem.h"
#include "base/thread_pool.h"
#include "replica/format.h"
#include "replica/life.h"
#include "replica/nats_setup.h"

#include <assert.h>
#include <inttypes.h>
#include <jansson.h>
#include <nats/nats.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { JOBS = 5, NATS_LINK_MAGIC = 0x4a751127 };

struct nats_link {
	unsigned magic; /* the library's threads give it back */
	struct loop *to;
	struct thread_pool *pool;
	struct nats_setup
		setup; /* the pool's thread; after a set-up that went well the receiver's too */
	natsSubscription *acks;
	natsInbox *inbox;
	bool subscribed;
	sem_t ended; /* posted by the library's thread that answers, when it has called us for the last time */
	atomic_bool ends; /* the relay does */
};

/* Work for the pool's thread; the note comes back. */
struct job {
	struct thread_pool_job job;
	struct nats_link *link;
	struct nats_link_note *note;
	char *subject; /* or the path of a folder */
	uint64_t before, keep;
	struct epoch_own own;
	struct replica_epoch row;
	bool anew;
};

static struct nats_link_note *note_new(enum nats_link_note_type type)
{
	return mailbox_note(sizeof(struct nats_link_note), type);
}

static void post_note(struct nats_link *l, enum nats_link_note_type type)
{
	magic_check(l, NATS_LINK_MAGIC);
	loop_post(l->to, &note_new(type)->note);
}

static void on_disconnected(void *owner)
{
	post_note(owner, NATS_LINK_DOWN);
}

static void on_reconnected(void *owner)
{
	post_note(owner, NATS_LINK_BACK);
}

static void on_denied(void *owner, const char *what)
{
	struct nats_link *l = owner;
	magic_check(l, NATS_LINK_MAGIC);
	struct nats_link_note *n = note_new(NATS_LINK_DENIED);
	snprintf(n->error, sizeof n->error, "%s", what);
	loop_post(l->to, &n->note);
}

static void all_answered(void *closure)
{
	struct nats_link *l = closure;
	magic_check(l, NATS_LINK_MAGIC);
	sem_post(&l->ended);
}

/* Of an account, of a server (two), of the stream's own storage. */
static bool is_no_room(json_int_t err_code)
{
	return err_code == JSAccountResourcesExceededErr ||
	       err_code == JSInsufficientResourcesErr ||
	       err_code == JSStorageResourcesExceededErr || err_code == JSStreamStoreFailedErr;
}

static void read_answer(natsMsg *msg, struct nats_link_note *n)
{
	json_int_t sequence = 0;
	const char *error = NULL;
	json_int_t code = 0;
	json_t *o = json_loadb(natsMsg_GetData(msg), (size_t)natsMsg_GetDataLength(msg), 0, NULL);
	if (natsMsg_IsNoResponders(msg)) {
		snprintf(n->error, sizeof n->error, "no stream takes it");
	} else if (!o) {
		snprintf(n->error, sizeof n->error, "an answer that makes no sense");
	} else if (json_unpack(o, "{s:{s:s}}", "error", "description", &error) == 0) {
		snprintf(n->error, sizeof n->error, "%s", error);
		json_unpack(o, "{s:{s:I}}", "error", "err_code", &code);
		n->full = is_no_room(code);
	} else if (json_unpack(o, "{s:I}", "seq", &sequence) != 0 || sequence <= 0) {
		snprintf(n->error, sizeof n->error, "an answer without a number");
	}
	n->sequence = (uint64_t)sequence;
	json_decref(o);
}

static void on_answer(natsConnection *nc, natsSubscription *sub, natsMsg *msg, void *closure)
{
	struct nats_link *l = closure;
	magic_check(l, NATS_LINK_MAGIC);
	struct nats_link_note *n = note_new(NATS_LINK_ACK);
	const char *subject = natsMsg_GetSubject(msg), *dot = strrchr(subject, '.');
	(void)nc;
	(void)sub;
	n->number = dot ? strtoull(dot + 1, NULL, 10) : 0;
	read_answer(msg, n);
	natsMsg_Destroy(msg);
	loop_post(l->to, &n->note);
}

static natsStatus subscribe_acks(struct nats_link *l)
{
	if (l->subscribed)
		return NATS_OK;
	char *all = mem_printf("%s.*", l->inbox);
	natsStatus s = natsConnection_Subscribe(&l->acks, l->setup.connection, all, on_answer, l);
	if (s == NATS_OK)
		s = natsSubscription_SetPendingLimits(l->acks, -1, -1);
	if (s == NATS_OK)
		s = natsSubscription_SetOnCompleteCB(l->acks, all_answered, l);
	free(all);
	l->subscribed = s == NATS_OK;
	return s;
}

static void say_error(struct nats_link_note *n, const char *what, natsStatus s)
{
	natsStatus last;
	const char *detail = nats_GetLastError(&last);
	snprintf(n->error, sizeof n->error, "%s: %s%s%s", what, natsStatus_GetText(s),
		 detail && *detail ? ": " : "", detail ? detail : "");
}

static const struct nats_callbacks callbacks = {on_disconnected, on_reconnected, on_denied};

/* Nobody calls us after it. */
static void disconnect_link(struct nats_link *l)
{
	natsSubscription_Destroy(l->acks);
	nats_setup_close(&l->setup);
	if (l->subscribed)
		nats_setup_await_end(&l->ended);
	l->acks = NULL;
	l->subscribed = false;
}

static void tell_stream(struct nats_link_note *n, const struct nats_stream *is)
{
	n->fresh = is->fresh;
	n->mended = is->mended;
	n->alone = is->alone;
	n->first = is->first;
	n->last = is->last;
	n->lost = is->lost;
}

/* Else less may be there than was acknowledged, which is what a loss looks like. */
static natsStatus count_settled(struct nats_link *l, struct nats_stream *is)
{
	struct nats_stream now;
	natsStatus s = nats_setup_look_settled(&l->setup, is, &now);
	if (s == NATS_OK) {
		is->first = now.first;
		is->last = now.last;
		is->lost = now.lost;
	}
	return s;
}

static void set_up(struct thread_pool_job *tj)
{
	struct job *j = (struct job *)tj;
	struct nats_link *l = j->link;
	struct nats_link_note *n = j->note;
	if (j->anew || nats_setup_is_over(&l->setup))
		disconnect_link(l);
	natsStatus s = nats_setup_connect(&l->setup, &callbacks, l);
	if (s == NATS_OK && !l->inbox)
		s = natsInbox_Create(&l->inbox);
	if (s == NATS_OK)
		s = subscribe_acks(l);
	if (s != NATS_OK) {
		say_error(n, "connection", s);
		return;
	}
	struct nats_stream is;
	s = nats_setup_stream(&l->setup, &j->row, &is);
	if (s == NATS_OK && !is.fresh)
		s = count_settled(l, &is);
	tell_stream(n, &is);
	n->fenced = s == NATS_ILLEGAL_STATE;
	if (s == NATS_INVALID_ARG && is.wrong)
		snprintf(n->error, sizeof n->error,
			 "stream: %s: remove it, and it is made as it is to be", is.wrong);
	else if (s != NATS_OK)
		say_error(n, "stream", s);
}

static void look_at_stream(struct thread_pool_job *tj)
{
	struct job *j = (struct job *)tj;
	struct nats_stream is;
	natsStatus s = nats_setup_look(&j->link->setup, &is);
	if (s == NATS_OK && !is.fresh && is.last < j->note->acked)
		s = count_settled(j->link, &is);
	tell_stream(j->note, &is);
	if (s != NATS_OK)
		say_error(j->note, "stream", s);
}

static void purge_subject(struct thread_pool_job *tj)
{
	struct job *j = (struct job *)tj;
	natsStatus s = nats_setup_purge(&j->link->setup, j->subject, j->before, j->keep);
	if (s != NATS_OK)
		say_error(j->note, "purge", s);
}

static void note_beat(struct thread_pool_job *tj)
{
	struct job *j = (struct job *)tj;
	j->note->beat = life_write(j->subject, &j->own) ? j->own.beat : 0;
}

static void finish_job(struct thread_pool_job *tj)
{
	struct job *j = (struct job *)tj;
	if (!tj->worked)
		snprintf(j->note->error, sizeof j->note->error, "the relay ends");
	loop_post(j->link->to, &j->note->note);
	free(j->subject);
	free(j);
}

static struct job *job_new(struct nats_link *l, struct nats_link_note *n,
			   void (*work)(struct thread_pool_job *), const char *subject)
{
	struct job *j = mem_zalloc(sizeof *j);
	j->link = l;
	j->note = n;
	j->subject = mem_strdup(subject);
	j->job.work = work;
	j->job.done = finish_job;
	return j;
}

static void give_job(struct nats_link *l, struct job *j)
{
	if (!thread_pool_give(l->pool, &j->job))
		finish_job(&j->job);
}

struct nats_link *nats_link_new(const struct conf *c, const char *node, struct loop *to)
{
	struct nats_link *l = mem_zalloc(sizeof *l);
	l->magic = NATS_LINK_MAGIC;
	l->to = to;
	sem_init(&l->ended, 0, 0);
	nats_setup_init(&l->setup, c, node);
	l->setup.ends = &l->ends;
	l->pool = thread_pool_new("replica-nats", 1, JOBS);
	return l;
}

void nats_link_start(struct nats_link *l)
{
	thread_pool_start(l->pool);
}

void nats_link_stop(struct nats_link *l)
{
	atomic_store(&l->ends, true);
	thread_pool_stop(l->pool);
	disconnect_link(l);
}

void nats_link_free(struct nats_link **lp)
{
	struct nats_link *l = *lp;
	if (!l)
		return;
	thread_pool_free(&l->pool);
	natsInbox_Destroy(l->inbox);
	nats_setup_fini(&l->setup);
	sem_destroy(&l->ended);
	assert(!l->subscribed); /* nobody calls us any more */
	magic_free(l);
	*lp = NULL;
}

void nats_link_set_up(struct nats_link *l, const struct replica_epoch *row, bool anew)
{
	struct nats_link_note *n = note_new(NATS_LINK_SET_UP);
	struct job *j = job_new(l, n, set_up, "");
	n->epoch = row->epoch;
	j->row = *row;
	j->anew = anew;
	give_job(l, j);
}

const char *nats_link_publish(struct nats_link *l, const char *subject, uint64_t number,
			      const void *message, size_t len)
{
	char reply[128];
	assert(l->subscribed); /* the last set-up went well */
	snprintf(reply, sizeof reply, "%s.%" PRIu64, l->inbox, number);
	natsStatus s = natsConnection_PublishRequest(l->setup.connection, subject, reply, message,
						     (int)len);
	return s == NATS_OK ? NULL : natsStatus_GetText(s);
}

void nats_link_purge(struct nats_link *l, const char *subject, uint64_t before, uint64_t keep)
{
	struct job *j = job_new(l, note_new(NATS_LINK_PURGED), purge_subject, subject);
	j->before = before;
	j->keep = keep;
	give_job(l, j);
}

void nats_link_look(struct nats_link *l, uint64_t acked)
{
	struct nats_link_note *n = note_new(NATS_LINK_LOOKED);
	n->acked = acked;
	give_job(l, job_new(l, n, look_at_stream, ""));
}

void nats_link_note_beat(struct nats_link *l, const char *spool, const struct epoch_own *own)
{
	struct job *j = job_new(l, note_new(NATS_LINK_BEAT), note_beat, spool);
	j->own = *own;
	give_job(l, j);
}
