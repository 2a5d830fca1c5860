/* keeper.h - the spool as a fuzzer needs it: it keeps in memory what it is given, and answers when it
 * is told to.
 *
 * Defines what spool.c and spool_file.c would; a target that includes it must link neither.
 *
 * OWNERSHIP  keeper_new() gives it to the caller, who never frees it. A message that was posted stays
 *            here until keeper_answer().
 * THREAD     The test's, which drives the loops itself.
 */
#ifndef TESTS_FUZZ_KEEPER_H
#define TESTS_FUZZ_KEEPER_H

#include "base/log.h"
#include "base/mem.h"
#include "spool/spool.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { KEEPER_WAITING = 16 };

struct spool {
	struct loop *loop;
	int expected; /* transactions under way */
	bool accepting, behind;
	int nwaiting;
	struct spool_store *waiting[KEEPER_WAITING]; /* not answered yet */
};

struct spool_file {
	struct buf bytes;
};

static void keeper_receive(void *owner, struct note *note)
{
	struct spool *s = owner;
	assert(note->type == SPOOL_STORE && s->nwaiting < KEEPER_WAITING);
	s->waiting[s->nwaiting++] = (struct spool_store *)note;
}

static struct spool *keeper_new(void)
{
	struct spool *s = mem_zalloc(sizeof *s);
	s->loop = loop_new("spool", keeper_receive, NULL, s);
	s->accepting = true;
	return s;
}

/* The bytes of a message that waits. */
static const char *keeper_content(const struct spool_store *m, size_t *len)
{
	*len = m->file ? buf_len(&m->file->bytes) : (size_t)m->content->size;
	return m->file ? buf_data(&m->file->bytes) : m->content->memory;
}

static void keeper_free_content(struct spool_store *m)
{
	content_unref(m->content);
	m->content = NULL;
	spool_file_discard(&m->file);
	envelope_free(&m->envelope);
	log_held_free(&m->log);
}

/* Answer the oldest. */
static void keeper_answer(struct spool *s, bool stored)
{
	struct spool_store *m = s->waiting[0];
	assert(s->nwaiting > 0);
	for (int i = 1; i < s->nwaiting; i++)
		s->waiting[i - 1] = s->waiting[i];
	s->nwaiting--;
	keeper_free_content(m);
	m->stored = stored;
	m->note.type = SPOOL_STORED;
	loop_post(m->reply_to, &m->note);
}

struct loop *spool_loop(struct spool *s)
{
	return s->loop;
}

struct spool_file *spool_file_new(struct spool *s, uint64_t id)
{
	(void)s;
	(void)id;
	return mem_zalloc(sizeof(struct spool_file));
}

int spool_file_write(struct spool_file *f, const void *bytes, size_t len)
{
	buf_append(&f->bytes, bytes, len);
	return 0;
}

uint64_t spool_file_size(const struct spool_file *f)
{
	return buf_len(&f->bytes);
}

ssize_t spool_file_read(const struct spool_file *f, uint64_t offset, void *to, size_t len)
{
	size_t left = buf_len(&f->bytes) - (size_t)offset;
	len = len < left ? len : left;
	memcpy(to, buf_data(&f->bytes) + offset, len);
	return (ssize_t)len;
}

void spool_file_unname(struct spool_file *f)
{
	(void)f; /* it has no name */
}

void spool_file_discard(struct spool_file **fp)
{
	if (*fp)
		buf_fini(&(*fp)->bytes);
	free(*fp);
	*fp = NULL;
}

void spool_store_free(struct spool_store **sp)
{
	struct spool_store *m = *sp;
	*sp = NULL;
	if (!m)
		return;
	spool_store_free(&m->with);
	keeper_free_content(m);
	free(m);
}

void spool_post(struct spool *s, struct note *note)
{
	loop_post(spool_loop(s), note);
}

void spool_expect(struct spool *s, int n)
{
	s->expected += n;
	assert(s->expected >= 0);
}

bool spool_uncopied(const struct spool *s)
{
	(void)s;
	return false;
}

bool spool_accepting(const struct spool *s)
{
	return s->accepting;
}

bool spool_behind(const struct spool *s, const char *flow)
{
	(void)flow;
	return s->behind;
}

#endif
