/* SPDX-License-Identifier: ISC */
#include "tests/unit/histories/jetstream.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { STREAMS = 16, MESSAGE_COSTS = 30, BEHIND_MOST = 8 };

/* What was done to a stream. */
struct jetstream_op {
	enum { OP_MESSAGE, OP_PURGE, OP_CONFIG } kind;
	struct jetstream_blob *blob;
	char *text; /* PURGE: a subject or NULL; CONFIG: subjects */
	char *description;
	uint64_t before, keep;
};

static struct jetstream_stream streams[STREAMS];
static int nstream;
static bool lost[STREAMS];
static int64_t room, used, limit;

void jetstream_drop(struct jetstream_blob *b)
{
	if (!b || --b->refs > 0)
		return;
	free(b->subject);
	free(b);
}

static void content_fini(struct jetstream_content *c)
{
	for (size_t i = 0; i < c->n; i++)
		jetstream_drop(c->message[i].blob);
	free(c->message);
	free(c->subjects);
	free(c->description);
	*c = (struct jetstream_content){.n = 0};
}

static void content_copy(struct jetstream_content *to, const struct jetstream_content *from)
{
	content_fini(to);
	*to = *from;
	to->subjects = mem_strdup(from->subjects);
	to->description = mem_strdup(from->description);
	to->cap = from->n;
	to->message = mem_alloc((from->n + 1) * sizeof *to->message);
	for (size_t i = 0; i < from->n; i++) {
		to->message[i] = from->message[i];
		to->message[i].blob->refs++;
	}
}

static void forget_ops(struct jetstream_stream *s, size_t from)
{
	for (size_t i = from; i < s->nop; i++) {
		jetstream_drop(s->op[i].blob);
		free(s->op[i].text);
		free(s->op[i].description);
	}
	s->nop = from;
}

static void stream_fini(struct jetstream_stream *s)
{
	content_fini(&s->now);
	content_fini(&s->stable);
	content_fini(&s->before);
	forget_ops(s, 0);
	free(s->op);
	free(s->name);
}

void jetstream_begin(void)
{
	for (int i = 0; i < nstream; i++)
		stream_fini(&streams[i]);
	memset(streams, 0, sizeof streams);
	memset(lost, 0, sizeof lost);
	nstream = 0;
	used = 0;
	room = limit = INT64_MAX;
}

void jetstream_room(int64_t bytes)
{
	room = bytes;
}

void jetstream_limit(int64_t bytes)
{
	limit = bytes;
}

int64_t jetstream_bytes(void)
{
	return used;
}

static int64_t cost_of(const struct jetstream_blob *b)
{
	return (int64_t)b->len + MESSAGE_COSTS;
}

static int64_t bytes_of(const struct jetstream_content *c)
{
	int64_t bytes = 0;
	for (size_t i = 0; i < c->n; i++)
		bytes += cost_of(c->message[i].blob);
	return bytes;
}

struct jetstream_stream *jetstream_find(const char *name)
{
	for (int i = 0; i < nstream; i++)
		if (!streams[i].gone && strcmp(streams[i].name, name) == 0)
			return &streams[i];
	return NULL;
}

const char *jetstream_name(int n)
{
	for (int i = 0; i < nstream; i++)
		if (!streams[i].gone && n-- == 0)
			return streams[i].name;
	return NULL;
}

/* "*" is one token, ">" all that follow. */
bool jetstream_matches(const char *filter, const char *subject)
{
	while (*filter) {
		if (strcmp(filter, ">") == 0)
			return *subject;
		if (*filter == '*') {
			subject += strcspn(subject, ".");
			filter++;
		} else if (*filter++ != *subject++) {
			return false;
		}
	}
	return !*subject;
}

static bool is_meant(const struct jetstream_message *m, const char *filter, uint64_t before)
{
	return m->sequence < before && (!filter || jetstream_matches(filter, m->blob->subject));
}

/* But for the last `keep` of them. */
static void take_out(struct jetstream_content *c, const char *filter, uint64_t before,
		     uint64_t keep)
{
	size_t kept = 0, meant = 0;
	for (size_t i = 0; i < c->n; i++)
		meant += is_meant(&c->message[i], filter, before);
	for (size_t i = 0; i < c->n; i++) {
		struct jetstream_message m = c->message[i];
		if (is_meant(&m, filter, before) && meant-- > keep)
			jetstream_drop(m.blob);
		else
			c->message[kept++] = m;
	}
	c->n = kept;
}

static void put_in(struct jetstream_content *c, struct jetstream_blob *b, bool keeps_one)
{
	if (keeps_one)
		take_out(c, b->subject, UINT64_MAX, 0);
	if (c->n == c->cap) {
		c->cap = c->cap ? c->cap * 2 : 16;
		c->message = mem_realloc(c->message, c->cap * sizeof *c->message);
	}
	c->message[c->n++] = (struct jetstream_message){.sequence = ++c->last, .blob = b};
	b->refs++;
}

static void apply(struct jetstream_content *c, const struct jetstream_op *op, bool keeps_one)
{
	switch (op->kind) {
	case OP_MESSAGE:
		put_in(c, op->blob, keeps_one);
		break;
	case OP_PURGE:
		take_out(c, op->text, op->before, op->keep);
		break;
	case OP_CONFIG:
		free(c->subjects);
		free(c->description);
		c->subjects = mem_strdup(op->text);
		c->description = mem_strdup(op->description);
		c->configs++;
		break;
	}
}

static void do_op(struct jetstream_stream *s, struct jetstream_op op)
{
	if (s->nop == s->op_cap) {
		s->op_cap = s->op_cap ? s->op_cap * 2 : 16;
		s->op = mem_realloc(s->op, s->op_cap * sizeof *s->op);
	}
	s->op[s->nop++] = op;
	if (op.kind != OP_CONFIG) /* which others agree upon */
		s->behind = false;
	used -= bytes_of(&s->now);
	apply(&s->now, &op, s->keeps_one);
	used += bytes_of(&s->now);
}

const struct jetstream_content *jetstream_seen(const struct jetstream_stream *s)
{
	return s->behind ? &s->before : &s->now;
}

/* Without some of what was done last. */
static void fall_behind(struct jetstream_stream *s, struct chance *chance)
{
	size_t most = s->nop < BEHIND_MOST ? s->nop : BEHIND_MOST;
	size_t known = s->nop - chance_below(chance, (uint32_t)most + 1);
	s->behind = known < s->nop;
	if (!s->behind)
		return;
	content_copy(&s->before, &s->stable);
	for (size_t i = 0; i < known; i++)
		apply(&s->before, &s->op[i], s->keeps_one);
}

void jetstream_elect(struct chance *chance)
{
	for (int i = 0; i < nstream; i++) {
		struct jetstream_stream *s = &streams[i];
		if (s->gone)
			continue;
		if (s->read && s->reader > s->acknowledged)
			s->reader -=
				chance_below(chance, (uint32_t)(s->reader - s->acknowledged) + 1);
		fall_behind(s, chance);
	}
}

enum jetstream_answer jetstream_add(const char *name, const char *subjects, const char *description,
				    bool keeps_one)
{
	if (jetstream_find(name))
		return JETSTREAM_OTHER;
	assert(nstream < STREAMS);
	lost[nstream] = false;
	struct jetstream_stream *s = &streams[nstream++];
	*s = (struct jetstream_stream){.name = mem_strdup(name), .keeps_one = keeps_one};
	s->now.subjects = mem_strdup(subjects);
	s->now.description = mem_strdup(description);
	s->stable.subjects = mem_strdup(subjects);
	s->stable.description = mem_strdup(description);
	return JETSTREAM_DONE;
}

enum jetstream_answer jetstream_update(const char *name, const char *subjects,
				       const char *description)
{
	struct jetstream_stream *s = jetstream_find(name);
	if (!s)
		return JETSTREAM_NOT_FOUND;
	do_op(s, (struct jetstream_op){.kind = OP_CONFIG,
				       .text = mem_strdup(subjects),
				       .description = mem_strdup(description)});
	return JETSTREAM_DONE;
}

enum jetstream_answer jetstream_delete(const char *name)
{
	struct jetstream_stream *s = jetstream_find(name);
	if (!s)
		return JETSTREAM_NOT_FOUND;
	used -= bytes_of(&s->now);
	content_fini(&s->now);
	s->gone = true;
	return JETSTREAM_DONE;
}

void jetstream_settle(void)
{
	for (int i = 0; i < nstream; i++)
		streams[i].behind &= !streams[i].keeps_one;
}

static struct jetstream_stream *stream_for(const char *subject)
{
	for (int i = 0; i < nstream; i++)
		if (!streams[i].gone && jetstream_matches(streams[i].now.subjects, subject))
			return &streams[i];
	return NULL;
}

static const struct jetstream_message *find_last(const struct jetstream_content *c,
						 const char *filter)
{
	for (size_t i = c->n; i > 0; i--)
		if (jetstream_matches(filter, c->message[i - 1].blob->subject))
			return &c->message[i - 1];
	return NULL;
}

const struct jetstream_message *jetstream_last(const struct jetstream_stream *s, const char *filter)
{
	return find_last(jetstream_seen(s), filter);
}

/* Spare messages are large and mostly zeros: without these, a history touches a third of the memory. */
static size_t length_without_zeros(const char *bytes, size_t len)
{
	static const char zeros[1024];
	while (len >= sizeof zeros && memcmp(bytes + len - sizeof zeros, zeros, sizeof zeros) == 0)
		len -= sizeof zeros;
	return len;
}

struct jetstream_blob *jetstream_blob(const char *subject, const void *bytes, size_t len)
{
	size_t kept = length_without_zeros(bytes, len);
	struct jetstream_blob *b = mem_alloc(sizeof *b + kept);
	b->refs = 1;
	b->subject = mem_strdup(subject);
	b->len = len;
	b->kept = kept;
	if (kept > 0)
		memcpy(b->bytes, bytes, kept);
	return b;
}

enum jetstream_answer jetstream_publish(struct jetstream_blob *b, const uint64_t *replaces,
					uint64_t *sequence)
{
	struct jetstream_stream *s = stream_for(b->subject);
	if (!s)
		return JETSTREAM_NO_STREAM;
	const struct jetstream_message *last = replaces ? find_last(&s->now, b->subject) : NULL;
	if (replaces && *replaces != (last ? last->sequence : 0))
		return JETSTREAM_OTHER;
	if (used + cost_of(b) > room || (!replaces && bytes_of(&s->now) + cost_of(b) > limit))
		return JETSTREAM_FULL;
	b->refs++;
	do_op(s, (struct jetstream_op){.kind = OP_MESSAGE, .blob = b});
	*sequence = s->now.last;
	return JETSTREAM_DONE;
}

enum jetstream_answer jetstream_purge(const char *name, const char *filter, uint64_t before,
				      uint64_t keep)
{
	struct jetstream_stream *s = jetstream_find(name);
	if (!s)
		return JETSTREAM_NOT_FOUND;
	struct jetstream_op op = {
		.kind = OP_PURGE, .before = before ? before : UINT64_MAX, .keep = keep};
	op.text = filter ? mem_strdup(filter) : NULL;
	do_op(s, op);
	return JETSTREAM_DONE;
}

static void sync_stream(struct jetstream_stream *s)
{
	content_copy(&s->stable, &s->now);
	s->stable_there = !s->gone;
	forget_ops(s, 0);
}

void jetstream_sync(void)
{
	for (int i = 0; i < nstream; i++)
		if (!streams[i].gone)
			sync_stream(&streams[i]);
}

/* The first of what was done since the last sync stay. */
static bool fall_back(struct jetstream_stream *s, struct chance *chance)
{
	size_t kept = s->nop;
	if (chance_percent(chance, 60))
		kept = chance_below(chance, (uint32_t)s->nop + 1);
	bool any = kept < s->nop;
	used -= bytes_of(&s->now);
	content_copy(&s->now, &s->stable);
	for (size_t i = 0; i < kept; i++)
		apply(&s->now, &s->op[i], s->keeps_one);
	used += bytes_of(&s->now);
	forget_ops(s, kept);
	sync_stream(s);
	s->read = s->behind = false;
	return any;
}

bool jetstream_crash(struct chance *chance, const char *prefix)
{
	bool any = false;
	for (int i = 0; i < nstream; i++) {
		struct jetstream_stream *s = &streams[i];
		bool meant = !s->gone && strncmp(s->name, prefix, strlen(prefix)) == 0;
		uint64_t configs = s->now.configs;
		lost[i] = meant && fall_back(s, chance);
		any |= s->keeps_one ? lost[i] : s->now.configs < configs;
	}
	return any;
}

bool jetstream_lost(const char *name)
{
	const struct jetstream_stream *s = jetstream_find(name);
	return s && lost[s - streams];
}
