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
	AGAIN_MS = 200, /* after the queue had no room; and how soon an interruption is seen */
};

struct moving {
	struct transfer *t;
	struct loop *loop;
	struct spool_look *from;
	int folder; /* of our queue */
	struct timer tick;
	struct spool_command *answer; /* of who is read */
	uint64_t id[BATCH];
	bool known[BATCH]; /* it is in our queue */
	size_t n,
		unknown; /* of these; and those of which our queue has not said whether it has them */
	uint64_t asked, answered, refused;
	uint64_t bytes, rcpts; /* of what is not answered */
};

static size_t place_of(const struct moving *m, uint64_t id)
{
	size_t low = 0, high = m->n;
	while (low + 1 < high) {
		size_t middle = low + (high - low) / 2;
		if (m->id[middle] <= id)
			low = middle;
		else
			high = middle;
	}
	assert(m->n > 0 && m->id[low] == id);
	return low;
}

static void hear_of(struct moving *m, struct spool_command *c)
{
	assert(m->unknown > 0);
	m->unknown--;
	m->known[place_of(m, c->id)] = c->nrow > 0;
	spool_command_free(&c);
}

static void hear(struct moving *m, struct spool_store *s)
{
	m->answered++;
	m->refused += !s->stored;
	m->t->messages += s->stored;
	m->t->doubtful += s->stored ? s->ticket : 0;
	free(s);
}

static void receive(void *owner, struct note *note)
{
	struct moving *m = owner;
	assert(note->type == SPOOL_COMMAND || note->type == SPOOL_STORED);
	if (note->type == SPOOL_STORED)
		hear(m, (struct spool_store *)note);
	else if (m->unknown > 0)
		hear_of(m, (struct spool_command *)note);
	else
		m->answer = (struct spool_command *)note;
}

static void tick(void *owner)
{
	struct moving *m = owner;
	loop_timer_in(m->loop, &m->tick, AGAIN_MS);
}

static bool interrupted(const struct moving *m)
{
	return atomic_load(m->t->interrupt);
}

static struct spool_command *question(struct moving *m, uint64_t id)
{
	struct spool_command *c = spool_command_new(SPOOL_SHOW, m->loop, m);
	c->id = id;
	return c;
}

/* NULL: interrupted. */
static struct spool_command *show(struct moving *m, uint64_t id)
{
	m->answer = NULL;
	loop_post(spool_look_loop(m->from), &question(m, id)->note);
	while (!m->answer && !interrupted(m))
		ev_run(m->loop->ev, EVRUN_ONCE);
	return m->answer;
}

/* Of all at once: our queue answers at the end of a turn, in which it may write what others bring. Interrupted, it has
 * stopped by then, or does before we end. */
static void ask_which_are_known(struct moving *m)
{
	m->unknown = m->n;
	for (size_t i = 0; i < m->n; i++)
		loop_post(spool_loop(m->t->spool), &question(m, m->id[i])->note);
	while (m->unknown > 0 && !interrupted(m))
		ev_run(m->loop->ev, EVRUN_ONCE);
}

static struct spool_file *new_file(struct moving *m, uint64_t id)
{
	char text[IDENT_TEXT];
	struct spool_file *f = spool_file_new(m->t->spool, id);
	if (f || errno != EEXIST)
		return f;
	/* Of an attempt that was killed: the queue has no such message. */
	char *path = mem_printf("large/%s", ident_text(id, text));
	disk_unlink(m->folder, path);
	free(path);
	return spool_file_new(m->t->spool, id);
}

/* All of it, into memory or into the file. An errno; EBADMSG: it is not what was stored. */
static int copy(const struct content *c, const struct envelope *e, char *memory,
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
	if (!error && e->summed && sum != e->sum)
		error = EBADMSG;
	if (!memory)
		free(piece);
	return error;
}

static int take_content(struct moving *m, struct spool_store *s, const struct content *c)
{
	const struct envelope *e = s->envelope;
	if (!c)
		return EBADMSG;
	if (e->size > SPOOL_CONTENT_INLINE_MAX) {
		s->file = new_file(m, e->id);
		int error = s->file ? copy(c, e, NULL, s->file) : errno;
		if (error)
			spool_file_discard(&s->file);
		return error;
	}
	char *memory = mem_alloc(e->size ? e->size : 1);
	int error = copy(c, e, memory, NULL);
	if (error)
		free(memory);
	else
		s->content = content_in_memory(memory, e->size);
	return error;
}

static void tell_doubt(struct moving *m, struct envelope *e)
{
	e->due_ms = clock_wall_ms();
	log_event(LOG_LEVEL_WARNING, "recovered", "id", log_id(e->id), "node", m->t->node, "reason",
		  "was being delivered when that node stopped; recipients without a recorded "
		  "verdict are tried again",
		  NULL);
}

static void post(struct moving *m, struct spool_store *s, enum spool_queue queue)
{
	s->log = log_hold(LOG_LEVEL_INFO, "adopted", "id", log_id(s->id), "node", m->t->node,
			  "queue", spool_queue_name(queue), "from", s->envelope->sender, "nrcpt",
			  log_number(s->envelope->nrcpt), "size",
			  log_number((int64_t)s->envelope->size), NULL);
	m->asked++;
	m->bytes += s->file ? 0 : s->envelope->size;
	m->rcpts += s->envelope->nrcpt;
	loop_post(spool_loop(m->t->spool), &s->note);
}

static void settle(struct moving *m)
{
	while (m->answered < m->asked && !interrupted(m))
		ev_run(m->loop->ev, EVRUN_ONCE);
	m->bytes = m->rcpts = 0;
}

static struct spool_store *new_store(struct moving *m, struct spool_row *row)
{
	struct spool_store *s = mem_zalloc(sizeof *s);
	s->note.type = SPOOL_STORE;
	s->reply_to = m->loop;
	s->adopted = true;
	s->id = row->envelope->id;
	s->envelope = row->envelope;
	s->ticket = row->queue == SPOOL_ACTIVE;
	row->envelope = NULL;
	return s;
}

/* An errno: the queue has no room, or the disk fails. */
static int store_row(struct moving *m, struct spool_row *row)
{
	enum spool_queue queue = row->queue;
	struct spool_store *s = new_store(m, row);
	int error = take_content(m, s, row->content);
	if (!error) {
		if (queue == SPOOL_ACTIVE)
			tell_doubt(m, s->envelope);
		post(m, s, queue);
		return 0;
	}
	envelope_free(&s->envelope);
	free(s);
	return error;
}

/* The same. */
static int store(struct moving *m, uint64_t id)
{
	struct spool_command *c = show(m, id);
	if (!c)
		return EINTR;
	int error = c->nrow > 0 && !interrupted(m) ? store_row(m, &c->row[0]) : 0;
	spool_command_free(&c);
	if (error != EBADMSG)
		return error;
	m->t->damaged++;
	log_event(LOG_LEVEL_ERROR, "damage", "id", log_id(id), "node", m->t->node, "reason",
		  "its content is damaged or missing in the copy; it is not adopted", NULL);
	return 0;
}

/* What is not known yet. False: once more. */
static bool store_all(struct moving *m)
{
	bool ok = true;
	m->refused = 0;
	for (size_t i = 0; i < m->n && !interrupted(m); i++) {
		if (m->known[i])
			continue;
		int error = store(m, m->id[i]);
		ok &= error == 0;
		if (m->bytes > BATCH_BYTES || m->rcpts > BATCH_RCPTS)
			settle(m);
	}
	settle(m);
	return ok && m->refused == 0;
}

/* Until all of them are in our queue. */
static bool store_batch(struct moving *m)
{
	if (!adoption_note(m->folder, m->id, m->n))
		return false;
	ask_which_are_known(m);
	for (size_t i = 0; i < m->n; i++)
		m->t->messages += m->known[i]; /* of an attempt before this one */
	while (!interrupted(m) && !store_all(m)) {
		usleep(AGAIN_MS * 1000);
		ask_which_are_known(m);
	}
	return !interrupted(m);
}

static bool move_all(struct moving *m)
{
	uint64_t after = 0;
	while ((m->n = spool_look_ids(m->from, after, m->id, BATCH)) > 0) {
		if (!store_batch(m))
			return false;
		after = m->id[m->n - 1];
	}
	return true;
}

bool transfer_run(struct transfer *t, struct buf *error)
{
	struct moving m = {.t = t};
	bool ok = false;
	m.folder = disk_open(AT_FDCWD, t->conf->spool, O_RDONLY | O_DIRECTORY);
	m.loop = loop_new("adopt", receive, NULL, &m);
	timer_init(&m.tick, tick, &m);
	tick(&m);
	m.from = m.folder >= 0 ? spool_look_new(t->conf, t->folder, error) : NULL;
	if (m.from)
		ok = move_all(&m);
	if (!ok && buf_len(error) == 0 && !atomic_load(t->interrupt))
		buf_printf(error, "%s: %s", t->conf->spool, strerror(errno));
	spool_look_free(&m.from);
	timer_stop(&m.loop->timers, &m.tick);
	loop_free(&m.loop);
	if (m.folder >= 0)
		disk_close(m.folder);
	return ok;
}
