/* SPDX-License-Identifier: ISC */
#include "base/table.h"

#include "base/file_io.h"
#include "base/mem.h"
#include "base/name_key.h"
#include "base/refs.h"
#include "base/socketmap_name.h"
#include "base/table_text.h"
#include "base/utf8.h"

#include <assert.h>
#include <cdb.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { REST_MS = 1000, PIECE = 1 << 16, KEY_MAX = 1000, TABLES_HEAD = 2048 };

struct stamp { /* of a file: it has changed when any of these has */
	dev_t device;
	ino_t inode;
	off_t size;
	int64_t changed_ns;
};

struct table {
	atomic_int refs;
	char *file;
	struct stamp stamp;
	bool verbatim, in_cdb;
	bool elsewhere;		      /* at this server: */
	struct socketmap_name server; /* whose texts lie in file */
	struct cdb cdb;
	struct table_text text;
};

static bool take_stamp(const char *file, struct stamp *s)
{
	struct stat st;
	*s = (struct stamp){0};
	if (stat(file, &st) != 0)
		return false;
	*s = (struct stamp){st.st_dev, st.st_ino, st.st_size,
			    (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec};
	return true;
}

static bool same_stamp(const struct stamp *a, const struct stamp *b)
{
	return a->device == b->device && a->inode == b->inode && a->size == b->size &&
	       a->changed_ns == b->changed_ns;
}

/* Nobody has written to it for a moment. What lies in the future has been set by hand. */
static bool is_at_rest(const struct stamp *s)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	int64_t age_ms = ((int64_t)now.tv_sec * 1000000000 + now.tv_nsec - s->changed_ns) / 1000000;
	return age_ms < 0 || age_ms >= REST_MS;
}

/* Copy a file into memory that has a descriptor. -1: errno. */
static int copy_file(const char *file)
{
	char *piece = mem_alloc(PIECE);
	FILE *from = file_open(file);
	int to = from ? memfd_create("table", MFD_CLOEXEC) : -1;
	ssize_t n = to < 0 ? -1 : 1;
	while (n > 0) {
		n = read(fileno(from), piece, PIECE);
		if (n > 0 && write(to, piece, (size_t)n) != n)
			n = -1;
	}
	int error = errno;
	free(piece);
	if (from)
		fclose(from);
	if (n < 0 && to >= 0)
		close(to);
	errno = error;
	return n < 0 ? -1 : to;
}

/* Without a NUL behind, which some programs write. */
static char *copy_text(const struct cdb *c, unsigned len, unsigned at)
{
	const char *bytes = cdb_get(c, len, at);
	if (!bytes)
		return NULL;
	while (len > 0 && bytes[len - 1] == '\0')
		len--;
	return mem_strndup(bytes, len);
}

/* Keys must be folded in the file: a look-up can't fold them. */
static bool is_folded(const struct table_form *form, const char *key, struct buf *why)
{
	char *name = form->verbatim ? mem_strdup(key) : name_key(key);
	char *folded = form->fold ? form->fold(name) : NULL;
	const char *wanted = folded ? folded : name;
	bool same = strcmp(wanted, key) == 0;
	if (!same && !utf8_is_ascii(key))
		buf_printf(why, "the domain in the key \"%s\" must be in ASCII, as the DNS has it",
			   key);
	else if (!same)
		buf_printf(why, "the key \"%s\" must be %s", key, wanted);
	free(folded);
	free(name);
	return same;
}

static void check_record(struct table *t, const struct table_form *form, const void *context,
			 int number, struct conf_faults *faults, const char *file)
{
	struct cdb *c = &t->cdb, again = t->cdb;
	struct buf why = {0};
	char *key = copy_text(c, cdb_keylen(c), cdb_keypos(c));
	char *value = copy_text(c, cdb_datalen(c), cdb_datapos(c));
	const char *bare = key && *key == '@' ? key + 1 : key;
	/* The hash tables lie behind all records: a file cut short has lost them. */
	const void *raw = cdb_getkey(c);
	if (!key || !value || cdb_find(&again, raw, cdb_keylen(c)) <= 0)
		conf_fault(faults, file, number, "this record is damaged");
	else if (!table_key_lower(key))
		conf_fault(faults, file, number, "the key \"%s\" must be in lower case", key);
	else if (!is_folded(form, key, &why))
		conf_fault(faults, file, number, "%s", buf_cstr(&why));
	else if (form->check(context, bare, value, &why))
		conf_fault(faults, file, number, "%s", buf_cstr(&why));
	free(key);
	free(value);
	buf_fini(&why);
}

/* Do the 256 hash tables lie in the file? The last of them is its end. */
static bool is_whole(const struct cdb *c, off_t size)
{
	const unsigned char *head = cdb_get(c, TABLES_HEAD, 0);
	if (!head)
		return false;
	for (int i = 0; i < TABLES_HEAD; i += 8)
		if (cdb_unpack(head + i) + (uint64_t)cdb_unpack(head + i + 4) * 8 > (uint64_t)size)
			return false;
	return true;
}

static void read_cdb(struct table *t, const char *file, const struct table_form *form,
		     const void *context, struct conf_faults *faults)
{
	int fd = copy_file(file), number = 0, more = 0;
	unsigned at;
	if (fd < 0) {
		conf_fault(faults, file, CONF_LINE_NONE, "can't be read: %s", strerror(errno));
		return;
	}
	if (cdb_init(&t->cdb, fd) != 0) {
		conf_fault(faults, file, 1, "is no CDB file");
		close(fd);
		return;
	}
	t->in_cdb = true;
	if (!is_whole(&t->cdb, lseek(fd, 0, SEEK_END)))
		conf_fault(faults, file, 1, "this CDB file is cut short");
	cdb_seqinit(&at, &t->cdb);
	while ((more = cdb_seqnext(&at, &t->cdb)) > 0)
		check_record(t, form, context, ++number, faults, file);
	if (more < 0)
		conf_fault(faults, file, number + 1, "this CDB file is damaged");
	close(fd);
}

static bool named_cdb(const char *file)
{
	size_t len = strlen(file);
	return len > 4 && strcmp(file + len - 4, ".cdb") == 0;
}

/* Where it may not be one, or is written wrongly, conf_check() has said so. */
static struct table *new_server(struct table *t)
{
	struct buf why = {0};
	t->elsewhere = socketmap_name_parse(t->file, &t->server, &why);
	buf_fini(&why);
	return t;
}

struct table *table_read(const char *file, const struct table_form *form, const void *context,
			 struct conf_faults *faults)
{
	int before = faults->n;
	struct table *t = mem_zalloc(sizeof *t);
	atomic_init(&t->refs, 1);
	t->file = mem_strdup(file);
	t->verbatim = form->verbatim;
	if (socketmap_name_is(file))
		return new_server(t);
	take_stamp(file, &t->stamp);
	/* A file written in this very moment would have the same stamp: read it once more. */
	if (!is_at_rest(&t->stamp))
		t->stamp = (struct stamp){0};
	if (named_cdb(file))
		read_cdb(t, file, form, context, faults);
	else
		table_text_read(&t->text, file, form, context, faults);
	if (faults->n == before)
		return t;
	table_unref(t);
	return NULL;
}

struct table *table_ref(struct table *t)
{
	refs_take(&t->refs);
	return t;
}

void table_unref(struct table *t)
{
	if (!t || !refs_drop(&t->refs))
		return;
	if (t->in_cdb)
		cdb_free(&t->cdb);
	table_text_fini(&t->text);
	free(t->file);
	free(t);
}

/* With '@' in front or not, with NUL behind or not: as whoever made the file has it. */
static char *get_from_cdb(const struct table *t, const char *key)
{
	char spelt[KEY_MAX + 3];
	struct cdb c = t->cdb; /* it keeps its place in there */
	size_t len = strlen(key);
	if (len > KEY_MAX)
		return NULL;
	spelt[0] = '@';
	memcpy(spelt + 1, key, len + 1);
	for (int at = 1; at >= (strchr(key, '@') ? 1 : 0); at--)
		for (int nul = 0; nul <= 1; nul++)
			if (cdb_find(&c, spelt + at,
				     (unsigned)(len + 1) - (unsigned)at + (unsigned)nul) > 0)
				return copy_text(&c, cdb_datalen(&c), cdb_datapos(&c));
	return NULL;
}

const char *table_file(const struct table *t)
{
	return t->file;
}

const struct socketmap_name *table_server(const struct table *t)
{
	return t->elsewhere ? &t->server : NULL;
}

char *table_get(const struct table *t, const char *key, struct table_origin *origin)
{
	int line = 0;
	char *folded = t->verbatim || name_key_plain(key) ? NULL : name_key(key);
	const char *wanted = folded ? folded : key;
	char *value = t->in_cdb ? get_from_cdb(t, wanted) : table_text_get(&t->text, wanted, &line);
	free(folded);
	if (!value)
		return NULL;
	for (char *c = value; *c; c++)
		if (*c == '\n')
			*c = ' ';
	*origin = (struct table_origin){t->file, line};
	return value;
}

static void each_record(const struct table *t,
			void (*row)(void *context, const char *key, const char *value),
			void *context)
{
	struct cdb c = t->cdb;
	unsigned at;
	cdb_seqinit(&at, &c);
	while (cdb_seqnext(&at, &c) > 0) {
		char *key = copy_text(&c, cdb_keylen(&c), cdb_keypos(&c));
		char *value = copy_text(&c, cdb_datalen(&c), cdb_datapos(&c));
		if (key && value)
			row(context, key, value);
		free(key);
		free(value);
	}
}

void table_each(const struct table *t,
		void (*row)(void *context, const char *key, const char *value), void *context)
{
	for (int i = 0; i < t->text.n; i++)
		row(context, t->text.row[i].key, t->text.row[i].value);
	if (t->in_cdb)
		each_record(t, row, context);
}

char *table_any(const struct table *t, const char *except, uint64_t choice)
{
	uint64_t n = (uint64_t)t->text.n;
	for (uint64_t i = 0; i < n; i++) {
		const struct table_row *row = &t->text.row[(choice + i) % n];
		if (strcmp(row->key, except) != 0)
			return mem_strdup(row->value);
	}
	return NULL;
}

enum table_freshness table_fresh(const struct table *t)
{
	struct stamp now;
	if (t->elsewhere)
		return TABLE_FRESH;
	take_stamp(t->file, &now);
	if (same_stamp(&now, &t->stamp))
		return TABLE_FRESH;
	return is_at_rest(&now) ? TABLE_STALE : TABLE_WRITTEN;
}

void table_faulty(struct table *t)
{
	assert(!t->elsewhere);
	take_stamp(t->file, &t->stamp);
}
