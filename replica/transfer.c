/* SPDX-License-Identifier: ISC */
#include "replica/transfer.h"

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/ident.h"
#include "base/log.h"
#include "base/mem.h"
#include "spool/adoption.h"
#include "spool/disk.h"
#include "spool/spool.h"
#include "spool/spool_look.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	BATCH = 500,	       /* messages that are noted, and mostly stored, together */
	BATCH_BYTES = 4 << 20, /* new mail comes behind them */
	BATCH_RCPTS = 20000,
	PIECE = 64 << 10,
	AGAIN_MS = 200,	 /* after the queue had no room; and how soon an interruption is seen */
	ROOM_TRIES = 15, /* until it is said that it has none */
};

struct transfer {
	struct conf *conf;
	struct spool *spool;
	const atomic_bool *interrupt;
	struct loop *loop;
	struct timer tick;
	struct transfer_of of;
	struct spool_look *from;
	int folder;		      /* of our queue */
	struct spool_command *answer; /* of who is read */
	uint64_t id[BATCH];
	bool known[BATCH]; /* it is in our queue */
	size_t n;
	uint64_t told_of[BATCH]; /* the last batch of which any was named, */
	bool told[BATCH];	 /* and which of them the log has as in doubt */
	size_t ntold;
	size_t unknown; /* those of which our queue has not said whether it has them */
	uint64_t asked, answered, refused;
	int failed;	       /* why not all of them are in our queue, an errno */
	uint64_t bytes, rcpts; /* of what is not answered */
	struct transferred came;
};

static size_t place_of(const struct transfer *t, uint64_t id)
{
	size_t low = 0, high = t->n;
	while (low + 1 < high) {
		size_t middle = low + (high - low) / 2;
		if (t->id[middle] <= id)
			low = middle;
		else
			high = middle;
	}
	assert(t->n > 0 && t->id[low] == id);
	return low;
}

/* One whose envelope can't be read is there. */
static void hear_of(struct transfer *t, struct spool_command *c)
{
	assert(t->unknown > 0);
	t->unknown--;
	t->known[place_of(t, c->id)] = c->nrow > 0 || c->error;
	spool_command_free(&c);
}

static void hear_stored(struct transfer *t, struct spool_store *s)
{
	assert(t->answered < t->asked);
	t->answered++;
	t->refused += !s->stored;
	t->came.messages += s->stored;
	t->came.doubtful += s->stored ? s->cookie : 0;
	free(s);
}

static void receive_note(void *owner, struct note *note)
{
	struct transfer *t = owner;
	assert(note->type == SPOOL_COMMAND || note->type == SPOOL_STORED);
	if (note->type == SPOOL_STORED)
		hear_stored(t, (struct spool_store *)note);
	else if (t->unknown > 0)
		hear_of(t, (struct spool_command *)note);
	else {
		assert(!t->answer); /* one is asked for at a time */
		t->answer = (struct spool_command *)note;
	}
}

static void on_tick(void *owner)
{
	struct transfer *t = owner;
	loop_timer_in(t->loop, &t->tick, AGAIN_MS);
}

static bool is_interrupted(const struct transfer *t)
{
	return atomic_load(t->interrupt);
}

static struct spool_command *new_question(struct transfer *t, uint64_t id)
{
	struct spool_command *c = spool_command_new(SPOOL_SHOW, t->loop, t);
	c->id = id;
	return c;
}

/* NULL: interrupted. */
static struct spool_command *fetch_message(struct transfer *t, uint64_t id)
{
	assert(!t->answer);
	struct spool_command *of = new_question(t, id);
	of->checked = true;
	loop_post(spool_look_loop(t->from), &of->note);
	while (!t->answer && !is_interrupted(t))
		ev_run(t->loop->ev, EVRUN_ONCE);
	struct spool_command *c = t->answer;
	t->answer = NULL;
	return c;
}

/* Of all at once: our queue answers at the end of a turn, in which it may write what others bring. Interrupted, it has
 * stopped by then, or does before we end. */
static void ask_which_are_known(struct transfer *t)
{
	assert(t->unknown == 0);
	t->unknown = t->n;
	for (size_t i = 0; i < t->n; i++)
		loop_post(spool_loop(t->spool), &new_question(t, t->id[i])->note);
	while (t->unknown > 0 && !is_interrupted(t))
		ev_run(t->loop->ev, EVRUN_ONCE);
}

static struct spool_file *new_file(struct transfer *t, uint64_t id)
{
	char text[IDENT_TEXT];
	struct spool_file *f = spool_file_new(t->spool, id);
	if (f || errno != EEXIST)
		return f;
	/* Of an attempt that was killed: the queue has no such message. */
	assert(!t->known[place_of(t, id)]);
	char *path = mem_printf("large/%s", ident_text(id, text));
	disk_unlink(t->folder, path);
	free(path);
	return spool_file_new(t->spool, id);
}

/* All of it, into memory or into the file. An errno; EBADMSG: it is not what was stored. */
static int copy_content(const struct content *c, const struct envelope *e, char *memory,
			struct spool_file *file)
{
	char *piece = memory ? memory : mem_alloc(PIECE);
	uint32_t sum = 0;
	int error = 0;
	for (uint64_t at = 0; !error && at < e->size;) {
		size_t want = !memory && e->size - at > PIECE ? PIECE : (size_t)(e->size - at);
		ssize_t n = content_read(c, at, piece, want);
		if (n != (ssize_t)want) {
			error = n < 0 && errno != EBADMSG ? errno : EBADMSG;
			break;
		}
		sum = crc32c(sum, piece, want);
		error = file ? spool_file_write(file, piece, want) : 0;
		at += want;
	}
	if (!error && c->summed && sum != c->sum)
		error = EBADMSG;
	if (!memory)
		free(piece);
	return error;
}

/* Of its own, there as here: no content lies at the beginning of a segment. */
static bool has_file(const struct content *c)
{
	return c->file && c->offset == 0;
}

static int take_copy(struct transfer *t, struct spool_store *s, const struct content *c)
{
	const struct envelope *e = s->envelope;
	if (has_file(c)) {
		s->file = new_file(t, e->id);
		int error = s->file ? copy_content(c, e, NULL, s->file) : errno;
		if (error)
			spool_file_discard(&s->file);
		return error;
	}
	char *memory = mem_alloc(e->size ? e->size : 1);
	int error = copy_content(c, e, memory, NULL);
	if (error)
		free(memory);
	else
		s->content = content_in_memory(memory, e->size);
	return error;
}

/* The copy may have what names a place and not that place, where it did not come to have all. */
static int take_older(struct transfer *t, struct spool_store *s)
{
	struct content *c = spool_look_older(t->from, s->id, s->envelope->size);
	int error = c ? take_copy(t, s, c) : EBADMSG;
	content_unref(c);
	return error;
}

static int take_content(struct transfer *t, struct spool_store *s, const struct spool_row *row)
{
	int error = row->error == ENOENT ? EBADMSG : row->error;
	if (row->content)
		error = take_copy(t, s, row->content);
	return error == EBADMSG ? take_older(t, s) : error;
}

/* Before it is stored, so that nothing is in our queue that was not named; once, however often there is no room. */
static void tell_doubt(struct transfer *t, struct envelope *e, enum spool_queue queue)
{
	bool active = queue == SPOOL_ACTIVE;
	bool *told = &t->told[place_of(t, e->id)];
	if (!active && !t->of.doubt)
		return;
	if (active)
		e->due_ms = clock_wall_ms();
	if (*told)
		return;
	*told = true;
	log_event(LOG_LEVEL_WARNING, "recovered", "id", log_id(e->id), "node", t->of.node, "reason",
		  log_text("%s; recipients without a recorded verdict are tried again",
			   active ? "was being delivered when that node stopped" : t->of.doubt),
		  NULL);
}

static void post_store(struct transfer *t, struct spool_store *s, enum spool_queue queue)
{
	s->log = log_hold(LOG_LEVEL_INFO, "adopted", "id", log_id(s->id), "node", t->of.node,
			  "queue", spool_queue_name(queue), "from", s->envelope->sender, "nrcpt",
			  log_number(s->envelope->nrcpt), "size",
			  log_number((int64_t)s->envelope->size), NULL);
	t->asked++;
	t->bytes += s->file ? 0 : s->envelope->size;
	t->rcpts += s->envelope->nrcpt;
	loop_post(spool_loop(t->spool), &s->note);
}

static void await_answers(struct transfer *t)
{
	while (t->answered < t->asked && !is_interrupted(t))
		ev_run(t->loop->ev, EVRUN_ONCE);
	assert(t->answered <= t->asked);
	t->bytes = t->rcpts = 0;
}

/* A time that its sender has named as such stands as it is. */
static void put_times_right(struct envelope *e, int64_t ahead_ms)
{
	const bool scheduled = envelope_is_scheduled(e);
	e->arrived_ms -= ahead_ms;
	e->due_ms -= e->due_ms > 0 ? ahead_ms : 0;
	e->by_ms -= e->by ? ahead_ms : 0;
	e->not_before_ms -= e->not_before_ms > 0 && e->hold_for ? ahead_ms : 0;
	if (scheduled)
		e->due_ms = e->not_before_ms;
}

static struct spool_store *new_store(struct transfer *t, struct spool_row *row)
{
	struct spool_store *s = mailbox_note(sizeof *s, SPOOL_STORE);
	s->reply_to = t->loop;
	s->adopted = true;
	s->id = row->envelope->id;
	s->envelope = row->envelope;
	put_times_right(s->envelope, t->of.ahead_ms);
	s->cookie = row->queue == SPOOL_ACTIVE || t->of.doubt;
	row->envelope = NULL;
	return s;
}

/* An errno: the queue has no room, or the disk fails. */
static int store_row(struct transfer *t, struct spool_row *row)
{
	enum spool_queue queue = row->queue;
	struct spool_store *s = new_store(t, row);
	int error = take_content(t, s, row);
	if (!error) {
		tell_doubt(t, s->envelope, queue);
		post_store(t, s, queue);
		return 0;
	}
	envelope_free(&s->envelope);
	free(s);
	return error;
}

/* The same. */
static int store_message(struct transfer *t, uint64_t id)
{
	struct spool_command *c = fetch_message(t, id);
	if (!c)
		return EINTR;
	int error = c->error;
	if (c->nrow > 0)
		error = is_interrupted(t) ? EINTR : store_row(t, &c->row[0]);
	spool_command_free(&c);
	if (error != EBADMSG)
		return error;
	t->came.damaged++;
	log_event(LOG_LEVEL_ERROR, "damage", "id", log_id(id), "node", t->of.node, "reason",
		  "it is damaged in the copy, or its content is missing there; it is not adopted",
		  NULL);
	return 0;
}

/* Messages whose answer is not known yet. False: once more. */
static bool store_all(struct transfer *t)
{
	bool ok = true;
	t->refused = 0;
	t->failed = ENOSPC; /* a queue that refuses has none */
	for (size_t i = 0; i < t->n && !is_interrupted(t); i++) {
		if (t->known[i])
			continue;
		int error = store_message(t, t->id[i]);
		if (error)
			t->failed = error;
		ok &= error == 0;
		if (t->bytes > BATCH_BYTES || t->rcpts > BATCH_RCPTS)
			await_answers(t);
	}
	await_answers(t);
	return ok && t->refused == 0;
}

/* One that is tried again has been named. */
static void recall_told(struct transfer *t)
{
	if (t->ntold == t->n && memcmp(t->told_of, t->id, t->n * sizeof t->id[0]) == 0)
		return;
	memcpy(t->told_of, t->id, t->n * sizeof t->id[0]);
	memset(t->told, 0, sizeof t->told);
	t->ntold = t->n;
}

/* Until all of them are in our queue. */
static bool store_batch(struct transfer *t)
{
	assert(t->n > 0 && t->n <= BATCH);
	if (!adoption_note(t->folder, t->id, t->n))
		return false;
	recall_told(t);
	ask_which_are_known(t);
	for (size_t i = 0; i < t->n; i++)
		t->came.messages += t->known[i]; /* of an attempt before this one */
	int left = ROOM_TRIES;
	for (uint64_t before = t->came.messages; !is_interrupted(t) && !store_all(t);
	     before = t->came.messages) {
		left = t->came.messages > before ? ROOM_TRIES : left - 1;
		if (left == 0) {
			errno = t->failed;
			return false;
		}
		usleep(AGAIN_MS * 1000);
		ask_which_are_known(t);
	}
	return !is_interrupted(t);
}

static bool move_all(struct transfer *t)
{
	uint64_t after = 0;
	while ((t->n = spool_look_ids(t->from, after, t->id, BATCH)) > 0) {
		assert(t->n <= BATCH);
		if (!store_batch(t))
			return false;
		after = t->id[t->n - 1];
	}
	return true;
}

static bool read_and_move(struct transfer *t, const char *folder, struct buf *error)
{
	t->from = spool_look_new(t->conf, folder, error);
	bool whole = t->from && !spool_look_unreadable(t->from);
	if (t->from && !whole)
		buf_printf(error, "%s: a segment can't be read", folder);
	bool ok = whole && move_all(t);
	spool_look_free(&t->from);
	return ok;
}

void transfer_begin(struct transfer *t)
{
	t->ntold = 0;
}

bool transfer_run(struct transfer *t, const char *folder, const struct transfer_of *of,
		  struct transferred *came, struct buf *error)
{
	assert(!t->from && !timer_active(&t->tick));
	t->came = (struct transferred){.messages = 0};
	t->of = *of;
	t->folder = disk_open_top(t->conf->spool);
	on_tick(t);
	bool ok = t->folder >= 0 && read_and_move(t, folder, error);
	if (!ok && buf_len(error) == 0 && !is_interrupted(t))
		buf_printf(error, "%s: %s", t->conf->spool, strerror(errno));
	timer_stop(&t->loop->timers, &t->tick);
	disk_close(t->folder);
	*came = t->came;
	return ok;
}

struct transfer *transfer_new(struct conf *conf, struct spool *spool, const atomic_bool *interrupt)
{
	struct transfer *t = mem_zalloc(sizeof *t);
	t->conf = conf_ref(conf);
	t->spool = spool;
	t->interrupt = interrupt;
	t->loop = loop_new("adopt", receive_note, NULL, t);
	timer_init(&t->tick, on_tick, t);
	return t;
}

void transfer_free(struct transfer **tp)
{
	struct transfer *t = *tp;
	if (!t)
		return;
	assert(!timer_active(&t->tick));
	assert(!t->from);
	loop_free(&t->loop);
	spool_command_free(&t->answer);
	conf_unref(t->conf);
	free(t);
	*tp = NULL;
}
