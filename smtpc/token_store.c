/* SPDX-License-Identifier: ISC */
#include "smtpc/token_store.h"

#include "base/crc32c.h"
#include "base/file_io.h"
#include "base/mem.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char folder_name[] = "tokens", first_line[] = "sluice token 1\n";

enum { DIGEST = 32, NAME_PLAIN = 64, NAME_DIGITS = 16, SIZE_MAX_BYTES = 256 << 10 };

void token_grant_fini(struct token_grant *g)
{
	mem_free_secret(g->newest);
	mem_free_secret(g->before);
	*g = (struct token_grant){0};
}

static void put_digest(struct buf *to, const void *data, size_t len)
{
	unsigned char digest[EVP_MAX_MD_SIZE] = {0};
	EVP_Digest(data, len, digest, NULL, EVP_sha256(), NULL);
	for (int i = 0; i < DIGEST; i++)
		buf_printf(to, "%02x", digest[i]);
}

/* Which grant the operator has given; the caller's to free(). */
static char *digest_of_source(const struct token_source *s)
{
	struct buf all = {0}, hex = {0};
	const char *parts[] = {s->endpoint, s->client_id, s->refresh_token};
	buf_reserve(&all, 16 << 10);
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		buf_append(&all, parts[i] ? parts[i] : "", parts[i] ? strlen(parts[i]) + 1 : 1);
	put_digest(&hex, buf_data(&all), buf_len(&all));
	buf_wipe(&all);
	return buf_steal(&hex, NULL);
}

/* The caller's to free(). */
static char *name_of_file(const char *file)
{
	struct buf hex = {0};
	const char *slash = strrchr(file, '/');
	char *name = mem_strndup(slash ? slash + 1 : file, NAME_PLAIN);
	for (char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && (!strchr("-_.", *c) || c == name))
			*c = '_';
	put_digest(&hex, file, strlen(file));
	char *whole = mem_printf("%s-%.*s", name, NAME_DIGITS, buf_cstr(&hex));
	buf_fini(&hex);
	free(name);
	return whole;
}

char *token_store_path(const char *spool, const char *file)
{
	char *name = name_of_file(file);
	char *path = mem_printf("%s/%s/%s", spool, folder_name, name);
	free(name);
	return path;
}

/* A line's value, to be freed and wiped; NULL: it is not that line, and at stays. */
static char *take_line(const char **at, const char *end, const char *name)
{
	size_t len = strlen(name);
	const char *eol = memchr(*at, '\n', (size_t)(end - *at));
	if (!eol || (size_t)(eol - *at) < len || strncmp(*at, name, len) != 0)
		return NULL;
	char *value = mem_strndup(*at + len, (size_t)(eol - *at) - len);
	*at = eol + 1;
	return value;
}

/* Of another grant than the file's: nothing, and nothing is wrong. */
static bool read_text(const struct buf *b, const struct token_source *s, struct token_grant *g)
{
	const char *at = buf_data(b) + strlen(first_line);
	const char *end = buf_data(b) + buf_len(b) - CRC32C_LINE;
	char *file = take_line(&at, end, "file "), *of = take_line(&at, end, "of ");
	char *own = digest_of_source(s);
	if (of && strcmp(of, own) == 0) {
		g->newest = take_line(&at, end, "token ");
		g->before = take_line(&at, end, "before ");
	}
	free(own);
	free(of);
	free(file);
	return g->newest != NULL;
}

bool token_store_read(const char *spool, const char *file, const struct token_source *s,
		      struct token_grant *g, struct buf *why)
{
	struct buf text = {0};
	char *path = token_store_path(spool, file);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	bool good = false;
	*g = (struct token_grant){0};
	buf_reserve(&text, SIZE_MAX_BYTES * 2); /* it is not moved, so that one place is wiped */
	if (fd < 0 && errno == ENOENT)
		;
	else if (fd < 0 || !file_read(fd, SIZE_MAX_BYTES, &text))
		buf_printf(why, "%s: %s", path, strerror(errno));
	else if (!crc32c_text_good(buf_cstr(&text), buf_len(&text), first_line))
		buf_printf(why, "%s is damaged", path);
	else
		good = read_text(&text, s, g);
	if (fd >= 0)
		close(fd);
	buf_wipe(&text);
	free(path);
	return good;
}

/* The folder of tokens, made and synced into the spool if it is missing; -1: errno. */
static int open_folder(const char *spool)
{
	int above = open(spool, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (above < 0)
		return -1;
	bool made = mkdirat(above, folder_name, 0700) == 0;
	bool there = made ? fsync(above) == 0 : errno == EEXIST;
	int fd = there ? openat(above, folder_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
		       : -1;
	int error = errno;
	close(above);
	errno = error;
	return fd;
}

static bool replace_file(int folder, const char *name, const struct buf *text)
{
	char *fresh = mem_printf("%s.new", name);
	unlinkat(folder, fresh, 0); /* of a run that was killed */
	int fd = openat(folder, fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	bool good = fd >= 0 && file_write(fd, buf_data(text), buf_len(text)) && fsync(fd) == 0;
	if (fd >= 0)
		good = close(fd) == 0 && good;
	good = good && renameat(folder, fresh, folder, name) == 0 && fsync(folder) == 0;
	free(fresh);
	return good;
}

static void put_text(struct buf *to, const char *file, const struct token_source *s,
		     const struct token_grant *g)
{
	char *of = digest_of_source(s);
	buf_reserve(to, SIZE_MAX_BYTES);
	buf_printf(to, "%sfile %s\nof %s\ntoken %s\n", first_line, file, of, g->newest);
	if (g->before)
		buf_printf(to, "before %s\n", g->before);
	buf_printf(to, "crc %08X\n", crc32c(0, buf_data(to), buf_len(to)));
	free(of);
}

bool token_store_write(const char *spool, const char *file, const struct token_source *s,
		       const struct token_grant *g, struct buf *why)
{
	struct buf text = {0};
	char *name = name_of_file(file);
	int folder = open_folder(spool);
	put_text(&text, file, s, g);
	bool good = folder >= 0 && replace_file(folder, name, &text);
	if (!good)
		buf_printf(why, "%s/%s/%s: %s", spool, folder_name, name, strerror(errno));
	if (folder >= 0)
		close(folder);
	buf_wipe(&text);
	free(name);
	return good;
}

int token_store_lock(const char *file, bool wait)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0 || flock(fd, LOCK_EX | (wait ? 0 : LOCK_NB)) == 0)
		return fd;
	int error = errno;
	close(fd);
	errno = error;
	return -1;
}

struct token_stamp token_store_stamp(const char *spool, const char *file)
{
	struct token_stamp all = {0};
	char *kept = token_store_path(spool, file);
	const char *paths[] = {file, kept};
	for (int i = 0; i < 2; i++) {
		struct stat st;
		if (stat(paths[i], &st) != 0)
			continue;
		all.inode[i] = st.st_ino;
		all.written[i] = st.st_mtim;
	}
	free(kept);
	return all;
}

bool token_stamp_same(const struct token_stamp *a, const struct token_stamp *b)
{
	for (int i = 0; i < 2; i++)
		if (a->inode[i] != b->inode[i] || a->written[i].tv_sec != b->written[i].tv_sec ||
		    a->written[i].tv_nsec != b->written[i].tv_nsec)
			return false;
	return true;
}
