/* SPDX-License-Identifier: ISC */
#include "stages/draft.h"

#include "base/header_field.h"
#include "base/mem.h"
#include "stages/budget.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER_PIECE = 16 << 10, BODY_PIECE = 64 << 10, FIELDS_AT_FIRST = 32 };

void draft_init(struct draft *d, struct spool *spool, uint64_t id)
{
	*d = (struct draft){.spool = spool, .id = id};
}

static void forget_fields(struct draft *d)
{
	for (int i = 0; i < d->nfield; i++)
		free(d->field[i].own);
	free(d->field);
	free(d->header);
	budget_charge(&d->charged, 0);
	d->field = NULL;
	d->header = NULL;
	d->nfield = d->cap = 0;
	d->opened = d->changed = d->complete = d->broken = false;
}

void draft_body_drop(struct draft *d)
{
	if (!d->body)
		return;
	content_writer_fini(d->body);
	mem_free(&d->body);
}

void draft_fini(struct draft *d)
{
	forget_fields(d);
	draft_body_drop(d);
	envelope_free(&d->envelope);
	content_unref(d->content);
	d->content = NULL;
	if (d->file)
		spool_file_discard(&d->file);
	spool_store_free(&d->with);
}

static ssize_t read_content(const struct draft *d, uint64_t offset, void *to, size_t len)
{
	return d->content ? content_read(d->content, offset, to, len)
			  : spool_file_read(d->file, offset, to, len);
}

static struct draft_field *make_room(struct draft *d, int at)
{
	assert(d->opened && at >= 0 && at <= d->nfield && d->nfield <= d->cap);
	if (d->nfield == d->cap) {
		d->cap = d->cap ? d->cap * 2 : FIELDS_AT_FIRST;
		d->field = mem_realloc(d->field, (size_t)d->cap * sizeof *d->field);
	}
	struct draft_field *f = &d->field[at];
	memmove(f + 1, f, (size_t)(d->nfield - at) * sizeof *f);
	d->nfield++;
	return f;
}

/* How much of the text is header; the empty line is not. */
static size_t split_header(struct draft *d, const char *text, size_t len)
{
	size_t at = 0;
	while (at < len && header_field_name(text + at, len - at) > 0) {
		size_t n = header_field_end(text + at, len - at);
		*make_room(d, d->nfield) = (struct draft_field){text + at, n, NULL};
		at += n;
	}
	assert(at <= len);
	return at;
}

/* Where an empty line ends the header, at the latest; 0: not in what was read so far. */
static size_t header_ends(const char *text, size_t from, size_t len)
{
	if (len >= 2 && memcmp(text, "\r\n", 2) == 0)
		return 2;
	size_t at = from > 3 ? from - 3 : 0;
	const char *end = memmem(text + at, len - at, "\r\n\r\n", 4);
	return end ? (size_t)(end - text) + 4 : 0;
}

/* The header of what lies in a file, and a little more, into memory. */
static bool load_header(struct draft *d, size_t *len)
{
	struct buf text = {0};
	ssize_t n = 1;
	size_t end = 0;
	while (n > 0 && end == 0 && buf_len(&text) <= DRAFT_HEADER_MAX) {
		size_t before = buf_len(&text);
		n = read_content(d, before, buf_reserve(&text, HEADER_PIECE), HEADER_PIECE);
		buf_commit(&text, n > 0 ? (size_t)n : 0);
		end = header_ends(buf_data(&text), before, buf_len(&text));
	}
	d->header = buf_steal(&text, len);
	budget_charge(&d->charged, *len);
	return n >= 0;
}

bool draft_open(struct draft *d)
{
	size_t len = (size_t)d->size;
	if (d->opened)
		return true;
	assert(d->nfield == 0 && !d->header && !d->body);
	assert(!d->content || d->content->memory || d->size == 0);
	if (!d->content && !load_header(d, &len))
		return false;
	const char *text = d->content ? d->content->memory : d->header;
	d->opened = true;
	size_t at = split_header(d, text, len);
	/* Of a file only the beginning was read: a header without end is not known as a whole. */
	if (at > DRAFT_HEADER_MAX || (at == len && len < d->size)) {
		forget_fields(d);
		errno = EMSGSIZE;
		return false;
	}
	d->empty_line = len - at >= 2 && memcmp(text + at, "\r\n", 2) == 0;
	d->broken = at < len && !d->empty_line;
	d->body_at = at + (d->empty_line ? 2 : 0);
	return true;
}

void draft_insert(struct draft *d, int at, char *text)
{
	size_t len = strlen(text);
	assert(header_field_name(text, len) > 0 && text[len - 1] == '\n');
	*make_room(d, at) = (struct draft_field){text, len, text};
	d->changed = true;
}

void draft_remove(struct draft *d, int at)
{
	assert(d->opened && at >= 0 && at < d->nfield);
	struct draft_field *f = &d->field[at];
	free(f->own);
	memmove(f, f + 1, (size_t)(d->nfield - at - 1) * sizeof *f);
	d->nfield--;
	d->changed = true;
}

struct draft_field *draft_replace_fields(struct draft *d, int n)
{
	assert(d->opened && n >= 0);
	d->cap = n > 0 ? n : 1;
	d->field = mem_realloc(d->field, (size_t)d->cap * sizeof *d->field);
	d->nfield = n;
	d->changed = true;
	return d->field;
}

bool draft_field_is(const struct draft_field *f, const char *name)
{
	return header_field_is(f->text, header_field_name(f->text, f->len), name);
}

bool draft_addresses(const struct draft_field *f, struct address_list *to, struct buf *why)
{
	const char *value = (const char *)memchr(f->text, ':', f->len) + 1;
	return header_addresses(value, (size_t)(f->text + f->len - value), to, why);
}

ssize_t draft_content(const struct draft *d, uint64_t offset, void *to, size_t len)
{
	assert(!d->opened);
	return read_content(d, offset, to, len);
}

uint64_t draft_body_size(const struct draft *d)
{
	assert(d->opened && d->body_at <= d->size);
	return d->size - d->body_at;
}

ssize_t draft_body(const struct draft *d, uint64_t offset, void *to, size_t len)
{
	assert(d->opened);
	return read_content(d, d->body_at + offset, to, len);
}

const char *draft_body_bytes(const struct draft *d, size_t *len)
{
	assert(d->opened);
	*len = (size_t)(d->size - d->body_at);
	return d->content && d->content->memory ? d->content->memory + d->body_at : NULL;
}

void draft_body_begin(struct draft *d)
{
	assert(d->opened);
	draft_body_drop(d);
	if (d->file)
		spool_file_unname(d->file);
	d->body = mem_alloc(sizeof *d->body);
	content_writer_init(d->body, d->spool, d->id);
	d->changed = true;
}

void draft_body_put(struct draft *d, const char *bytes, size_t len)
{
	assert(d->body);
	content_writer_put(d->body, bytes, len);
}

void draft_complete(struct draft *d)
{
	assert(d->opened);
	d->complete = d->changed = true;
}

bool draft_settles_slowly(const struct draft *d)
{
	return d->changed && (d->file || (d->body && d->body->file));
}

static void write_header(const struct draft *d, struct content_writer *to)
{
	bool more = d->body || (d->complete && !d->broken);
	for (int i = 0; i < d->nfield; i++) {
		const struct draft_field *f = &d->field[i];
		content_writer_put(to, f->text, f->len);
		if ((i + 1 < d->nfield || more) && f->text[f->len - 1] != '\n')
			content_writer_put(to, "\r\n", 2);
	}
	if (d->empty_line || more)
		content_writer_put(to, "\r\n", 2);
}

/* The last two bytes of the body, as pieces of it come. */
struct tail {
	char bytes[2];
	size_t len;
};

static void tail_see(struct tail *t, const char *bytes, size_t len)
{
	for (size_t i = len > 2 ? len - 2 : 0; i < len; i++) {
		t->bytes[0] = t->bytes[1];
		t->bytes[1] = bytes[i];
		t->len++;
	}
}

/* Only one file at a time has that name and is written: the others only lend what is in them. */
static int copy_body(struct draft *d, struct content_writer *to)
{
	char *piece = mem_alloc(BODY_PIECE);
	struct draft new = {.opened = true};
	const struct draft *from = d;
	if (d->body) {
		content_writer_finish(d->body);
		int error = d->body->error;
		if (!error)
			new.size = content_writer_take(d->body, &new.content, &new.file);
		if (new.file)
			spool_file_unname(new.file);
		from = &new;
		if (error) {
			free(piece);
			return error;
		}
	}
	struct tail tail = {0};
	ssize_t n = 0;
	for (uint64_t at = 0; (n = draft_body(from, at, piece, BODY_PIECE)) > 0;
	     at += (uint64_t)n) {
		content_writer_put(to, piece, (size_t)n);
		tail_see(&tail, piece, (size_t)n);
	}
	if (d->complete && tail.len > 0 && memcmp(tail.bytes, "\r\n", 2) != 0)
		content_writer_put(to, "\r\n", 2);
	int error = n < 0 ? errno : 0;
	free(piece);
	draft_fini(&new);
	return error;
}

bool draft_settle(struct draft *d)
{
	struct content_writer to;
	assert(d->changed ? d->opened : !d->body); /* else what was put would be lost */
	if (!d->changed) {
		forget_fields(d);
		return true;
	}
	if (d->file)
		spool_file_unname(d->file);
	content_writer_init(&to, d->spool, d->id);
	buf_reserve(&to.memory, (size_t)(d->content ? d->size + 1024 : 0));
	write_header(d, &to);
	int error = copy_body(d, &to);
	content_writer_finish(&to);
	if (error || to.error) {
		content_writer_fini(&to);
		errno = error ? error : to.error;
		return false;
	}
	forget_fields(d);
	draft_body_drop(d);
	content_unref(d->content);
	if (d->file)
		spool_file_discard(&d->file);
	d->size = content_writer_take(&to, &d->content, &d->file);
	assert((d->content != NULL) != (d->file != NULL));
	return true;
}

void draft_give(struct draft *d, struct spool_store *store)
{
	assert(!d->opened && !d->body && !d->changed);
	assert(!store->envelope && !store->content && !store->file && !store->with);
	assert((d->content != NULL) != (d->file != NULL));
	store->id = d->envelope->id = d->id;
	store->envelope = d->envelope;
	store->envelope->size = d->size;
	store->content = d->content;
	store->file = d->file;
	store->with = d->with;
	d->envelope = NULL;
	d->content = NULL;
	d->file = NULL;
	d->with = NULL;
}
