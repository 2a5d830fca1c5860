/* SPDX-License-Identifier: ISC */
#include "cmd/logs/log_source.h"

#include "base/mem.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <isa-l/igzip_lib.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { INPUT_BYTES = 256 << 10, MAGIC_MAX = 6 };

struct gunzip {
	struct inflate_state state;
	bool between; /* members: the last one has ended */
	uint8_t input[INPUT_BYTES];
};

struct log_source {
	char *path;
	int fd;
	struct gunzip *gunzip; /* NULL: what is read is text */
	const char *program;   /* that unpacks it, or NULL */
	pid_t child;
	char *fault; /* NULL: none */
	bool end;
	size_t at, filled;
	char room[LOG_SOURCE_LINE_MAX];
};

static void fail_source(struct log_source *s, const char *why)
{
	if (!s->fault)
		s->fault = mem_strdup(why);
	s->end = true;
}

static size_t read_some(struct log_source *s, void *to, size_t size)
{
	ssize_t n;
	do
		n = read(s->fd, to, size);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		fail_source(s, strerror(errno));
	return n > 0 ? (size_t)n : 0;
}

static void begin_member(struct gunzip *g)
{
	isal_inflate_reset(&g->state);
	g->state.crc_flag = ISAL_GZIP;
	g->between = false;
}

/* More input; false: there is none. */
static bool feed_gunzip(struct log_source *s)
{
	struct gunzip *g = s->gunzip;
	g->state.next_in = g->input;
	g->state.avail_in = (uint32_t)read_some(s, g->input, sizeof g->input);
	if (g->state.avail_in == 0 && !g->between)
		fail_source(s, "it breaks off");
	return g->state.avail_in > 0;
}

static size_t inflate_some(struct log_source *s, void *to, size_t size)
{
	struct gunzip *g = s->gunzip;
	g->state.next_out = to;
	g->state.avail_out = (uint32_t)size;
	while (!s->end && g->state.avail_out == size) {
		if (g->state.avail_in == 0 && !feed_gunzip(s))
			break;
		if (g->between)
			begin_member(g);
		if (isal_inflate(&g->state) < 0)
			fail_source(s, "it is damaged");
		g->between = g->state.block_state == ISAL_BLOCK_FINISH;
	}
	return size - g->state.avail_out;
}

/* Behind what is left of the last line. */
static void fill_room(struct log_source *s)
{
	assert(s->at <= s->filled);
	memmove(s->room, s->room + s->at, s->filled - s->at);
	s->filled -= s->at;
	s->at = 0;
	assert(s->filled < sizeof s->room);
	char *to = s->room + s->filled;
	size_t size = sizeof s->room - s->filled;
	size_t n = s->gunzip ? inflate_some(s, to, size) : read_some(s, to, size);
	s->filled += n;
	s->end = s->end || n == 0;
}

bool log_source_line(struct log_source *s, const char **line, size_t *len)
{
	for (size_t seen = 0;;) {
		char *from = s->room + s->at, *lf;
		size_t left = s->filled - s->at;
		lf = memchr(from + seen, '\n', left - seen);
		if (lf || left == sizeof s->room || (s->end && left > 0)) {
			*line = from;
			*len = lf ? (size_t)(lf - from) : left;
			s->at += *len + (lf ? 1 : 0);
			return true;
		}
		if (s->end)
			return false;
		seen = left;
		fill_room(s);
	}
}

/* The program reads the file, and writes to the pipe. */
static _Noreturn void run_unpacker(const struct log_source *s, int to)
{
	char *words[] = {mem_strdup(s->program), mem_strdup("-dcq"), NULL};
	dup2(s->fd, STDIN_FILENO);
	dup2(to, STDOUT_FILENO);
	signal(SIGPIPE, SIG_DFL); /* the reader may have seen enough */
	execvp(words[0], words);
	_exit(127);
}

static void open_pipe(struct log_source *s)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) != 0 || (s->child = fork()) < 0) {
		fail_source(s, strerror(errno));
		return;
	}
	if (s->child == 0)
		run_unpacker(s, ends[1]);
	close(ends[1]);
	close(s->fd);
	s->fd = ends[0];
}

static void choose_way(struct log_source *s)
{
	static const struct {
		const char *magic, *program;
	} kinds[] = {{"\x1f\x8b", NULL},
		     {"\x28\xb5\x2f\xfd", "zstd"},
		     {"\xfd\x37zXZ", "xz"},
		     {"BZh", "bzip2"}};
	char magic[MAGIC_MAX] = "";
	if (pread(s->fd, magic, sizeof magic, 0) <= 0)
		return;
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
		if (memcmp(magic, kinds[i].magic, strlen(kinds[i].magic)) != 0)
			continue;
		s->program = kinds[i].program;
		if (s->program) {
			open_pipe(s);
			return;
		}
		s->gunzip = mem_zalloc(sizeof *s->gunzip);
		isal_inflate_init(&s->gunzip->state);
		begin_member(s->gunzip);
		return;
	}
}

struct log_source *log_source_open(const char *path, struct buf *error)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		buf_printf(error, "can't open %s: %s", path, strerror(errno));
		return NULL;
	}
	struct log_source *s = mem_zalloc(sizeof *s);
	s->path = mem_strdup(path);
	s->fd = fd;
	choose_way(s);
	return s;
}

/* Who was left before the end of the file was told so by SIGPIPE. */
static void reap_unpacker(struct log_source *s)
{
	int status = 0;
	bool all = s->end;
	while (waitpid(s->child, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		fail_source(s, "the program that unpacks it is not installed");
	else if (all && status != 0)
		fail_source(s, "it is damaged");
}

bool log_source_close(struct log_source **sp, struct buf *error)
{
	struct log_source *s = *sp;
	close(s->fd);
	if (s->child > 0)
		reap_unpacker(s);
	bool good = !s->fault;
	if (!good)
		buf_printf(error, "%s: %s%s%s%s", s->path, s->fault, s->program ? " (" : "",
			   s->program ? s->program : "", s->program ? ")" : "");
	free(s->fault);
	free(s->path);
	free(s->gunzip);
	free(s);
	*sp = NULL;
	return good;
}
