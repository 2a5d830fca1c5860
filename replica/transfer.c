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
	BATCH = 100, /* messages that are stored together */
	PIECE = 64 << 10,
	AGAIN_MS = 200, /* after the queue had no room; and how soon an interruption is seen */
};

struct moving {
	struct transfer *t;
	struct loop *loop;
	struct spool_look *from;
	int folder; /* of our queue */
	struct timer tick;
	struct spool_command *answer;
	uint64_t asked, answered, refused;
};

static void receive(void *owner, struct note *note)
{
	struct moving *m = owner;
	if (note->type == SPOOL_COMMAND) {
		m->answer = (struct spool_command *)note;
		return;
	}
	assert(note->type == SPOOL_STORED);
	struct spool_store *s = (struct spool_store *)note;
	m->answered++;
	m->refused += !s->stored;
	free(s);
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

/* NULL: interrupted; the queue that was asked has stopped by then, or does before we end. */
static struct spool_command *ask(struct moving *m, struct loop *queue, struct spool_command *c)
{
	m->answer = NULL;
	loop_post(queue, &c->note);
	while (!m->answer && !interrupted(m))
		ev_run(m->loop->ev, EVRUN_ONCE);
	return m->answer;
}

static struct spool_command *show(struct moving *m, struct loop *queue, uint64_t id)
{
	struct spool_command *c = spool_command_new(SPOOL_SHOW, m->loop, m);
	c->id = id;
	return ask(m, queue, c);
}

static bool known(struct moving *m, uint64_t id)
{
	struct spool_command *c = show(m, spool_loop(m->t->spool), id);
	bool there = c && c->nrow > 0;
	if (c)
		spool_command_free(&c);
	return there;
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
	m->t->doubtful++;
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
	m->t->messages++;
	loop_post(spool_loop(m->t->spool), &s->note);
}

/* An errno: the queue has no room, or the disk fails. */
static int store(struct moving *m, uint64_t id)
{
	struct spool_command *c = show(m, spool_look_loop(m->from), id);
	int error = 0;
	if (!c)
		return EINTR;
	if (c->nrow > 0 && !known(m, id) && !interrupted(m)) {
		struct spool_store *s = mem_zalloc(sizeof *s);
		enum spool_queue queue = c->row[0].queue;
		s->note.type = SPOOL_STORE;
		s->reply_to = m->loop;
		s->adopted = true;
		s->id = id;
		s->envelope = c->row[0].envelope;
		c->row[0].envelope = NULL;
		error = take_content(m, s, c->row[0].content);
		if (!error) {
			if (queue == SPOOL_ACTIVE)
				tell_doubt(m, s->envelope);
			post(m, s, queue);
		} else {
			envelope_free(&s->envelope);
			free(s);
		}
	}
	spool_command_free(&c);
	if (error != EBADMSG)
		return error;
	m->t->damaged++;
	log_event(LOG_LEVEL_ERROR, "damage", "id", log_id(id), "node", m->t->node, "reason",
		  "its content is damaged or missing in the copy; it is not adopted", NULL);
	return 0;
}

static void settle(struct moving *m)
{
	while (m->answered < m->asked && !interrupted(m))
		ev_run(m->loop->ev, EVRUN_ONCE);
}

/* Until all of them are in our queue. */
static bool store_batch(struct moving *m, const struct spool_command *c)
{
	uint64_t id[BATCH];
	bool again = true;
	for (int i = 0; i < c->nrow; i++)
		id[i] = c->row[i].envelope->id;
	if (!adoption_note(m->folder, id, (size_t)c->nrow))
		return false;
	while (again && !interrupted(m)) {
		uint64_t messages = m->t->messages;
		m->refused = 0;
		again = false;
		for (int i = 0; i < c->nrow; i++)
			again |= store(m, id[i]) != 0;
		settle(m);
		again |= m->refused > 0;
		if (again) {
			m->t->messages = messages;
			usleep(AGAIN_MS * 1000);
		}
	}
	return !again && !interrupted(m);
}

static bool move_all(struct moving *m)
{
	uint64_t after = 0;
	for (;;) {
		struct spool_command *c = spool_command_new(SPOOL_LIST, m->loop, m);
		c->after = after;
		c->limit = BATCH;
		c = ask(m, spool_look_loop(m->from), c);
		if (!c)
			return false;
		bool done = c->nrow == 0;
		bool ok = done || store_batch(m, c);
		if (!done)
			after = c->row[c->nrow - 1].envelope->id;
		spool_command_free(&c);
		if (done || !ok)
			return ok;
	}
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
