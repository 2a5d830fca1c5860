/* SPDX-License-Identifier: ISC */
#include "cmd/operator/client.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/file_io.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "cmd/control/control_path.h"
#include "cmd/control/control_wire.h"
#include "cmd/operator/offline.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { PING_MS = 20, TRY_SECONDS = 5 };

static int out_of_reach(const char *spool, const char *why)
{
	fprintf(stderr, "sluice: the relay cannot be reached at %s/control: %s\n", spool, why);
	return STATUS_UNREACHABLE;
}

static bool send_all(int fd, const char *data, size_t len)
{
	while (len > 0) {
		ssize_t n = send(fd, data, len, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		data += n;
		len -= (size_t)n;
	}
	return true;
}

static bool send_words(int fd, int argc, char **argv, bool progress)
{
	struct buf words = {0};
	if (progress)
		buf_append(&words, "=" CONTROL_WANTS_PROGRESS, sizeof CONTROL_WANTS_PROGRESS + 1);
	for (int i = 0; i < argc; i++) {
		buf_puts(&words, "=");
		buf_append(&words, argv[i], strlen(argv[i]) + 1);
	}
	buf_append(&words, "", 1);
	bool sent = send_all(fd, buf_data(&words), buf_len(&words));
	buf_fini(&words);
	return sent;
}

static bool read_whole(FILE *from, void *to, size_t len)
{
	return fread(to, 1, len, from) == len;
}

/* A message may hold bytes that a terminal obeys; one of 8 bits takes some for such that are no character. The text ends with a NUL. */
static void tame_text(char *text, size_t len)
{
	for (size_t i = 0, n; i < len; i += n) {
		n = text[i] == '\n' || text[i] == '\t' ? 1 : utf8_shown(text + i);
		if (n > 0)
			continue;
		text[i] = '?';
		n = 1;
	}
}

/* One line, written over and over, and wiped out before anything else is written. */
static void show_progress(char *text, size_t len)
{
	static bool shown;
	bool is = len > 0 && text[0] == CONTROL_PROGRESS[0];
	if (is)
		tame_text(text + 1, len - 1);
	if (shown || is)
		fputs("\r\033[K", stderr);
	if (is)
		fwrite(text + 1, 1, len - 1, stderr);
	shown = is;
}

/* Where an answer goes. */
struct answer {
	unsigned how;	  /* enum client_how */
	bool quiet;	  /* what is for standard error is dropped */
	struct buf *into; /* what is for standard output, or NULL */
};

/* Copy frames until the last. False: the connection broke off. */
static bool copy_answer(FILE *from, const struct answer *a, int *status)
{
	unsigned char head[CONTROL_HEAD], byte;
	bool ok = false;
	char *text = mem_alloc(CONTROL_FRAME_MAX + 1);
	while (read_whole(from, head, sizeof head)) {
		uint32_t n = control_head_read(head);
		FILE *to = n & CONTROL_ERROR_BIT ? stderr : stdout;
		n &= ~CONTROL_ERROR_BIT;
		if (n == 0) {
			show_progress(text, 0);
			ok = read_whole(from, &byte, 1);
			*status = ok ? byte : STATUS_UNREACHABLE;
			break;
		}
		if (n > CONTROL_FRAME_MAX || !read_whole(from, text, n))
			break;
		text[n] = '\0';
		show_progress(text, to == stderr ? n : 0);
		if (to == stderr && text[0] == CONTROL_PROGRESS[0])
			continue;
		if (a->into && to == stdout) {
			buf_append(a->into, text, n);
			continue;
		}
		if (a->quiet && to == stderr)
			continue;
		if (!(a->how & CLIENT_CLEAN) && isatty(fileno(to)))
			tame_text(text, n);
		fwrite(text, 1, n, to);
	}
	free(text);
	return ok;
}

static bool has_ended(const char *spool)
{
	int fd = control_path_connect(spool);
	bool ended = fd < 0 && (errno == ENOENT || errno == ECONNREFUSED);
	file_close(fd);
	return ended;
}

/* There was a relay, and it has not answered to the end. */
static int judge_break(const char *spool, const struct answer *a, const char *why)
{
	if (a->how & CLIENT_UNTIL_ENDED && has_ended(spool))
		return STATUS_DONE;
	return out_of_reach(spool, why);
}

static int ask_at(int fd, const char *spool, int argc, char **argv, const struct answer *a)
{
	FILE *from = fdopen(fd, "r");
	if (!from || !send_words(fd, argc, argv, isatty(STDERR_FILENO))) {
		int status = judge_break(spool, a, strerror(errno));
		if (from)
			fclose(from);
		return status;
	}
	int status = STATUS_UNREACHABLE;
	errno = 0;
	if (!copy_answer(from, a, &status))
		status = judge_break(spool, a,
				     errno == EAGAIN ? "it does not answer"
						     : "it broke off its answer");
	while ((a->how & CLIENT_UNTIL_CLOSED) && getc(from) != EOF)
		;
	fclose(from);
	if (fflush(stdout) != 0 && status == STATUS_DONE)
		status = STATUS_REFUSED;
	return status;
}

static int ask_relay(const char *spool, int argc, char **argv, const struct answer *a)
{
	int fd = control_path_connect(spool);
	if (fd < 0)
		return out_of_reach(spool, strerror(errno));
	return ask_at(fd, spool, argc, argv, a);
}

int client_order(const struct conf *conf, int argc, char **argv, unsigned how)
{
	int fd = control_path_connect(conf->spool);
	if (fd >= 0)
		return ask_at(fd, conf->spool, argc, argv, &(struct answer){.how = how});
	bool none = errno == ENOENT || errno == ECONNREFUSED;
	int status = out_of_reach(conf->spool, strerror(errno));
	if (none)
		fprintf(stderr,
			"sluice: a relay that was started when %s had another spool still has "
			"that: signals and systemctl reach it, or -c and a file with that spool\n",
			conf->file);
	return status;
}

int client_run(const char *conf_file, int argc, char **argv, unsigned how)
{
	struct conf *conf = options_conf_to_ask_at(conf_file);
	if (!conf)
		return STATUS_REFUSED;
	int status = client_ask(conf->spool, argc, argv, how);
	conf_unref(conf);
	return status;
}

static int ask_queue(struct conf *conf, int argc, char **argv, const struct answer *a)
{
	pid_t child = 0;
	int fd = control_path_connect(conf->spool), why = errno;
	if (fd < 0 && !conf->faulty && (why == ENOENT || why == ECONNREFUSED))
		fd = offline_begin(conf, &child);
	if (fd < 0)
		return out_of_reach(conf->spool, strerror(why));
	int status = ask_at(fd, conf->spool, argc, argv, a);
	if (child > 0)
		offline_end(child);
	return status;
}

int client_ask_queue(struct conf *conf, int argc, char **argv, unsigned how)
{
	return ask_queue(conf, argc, argv, &(struct answer){.how = how});
}

int client_ask_queue_into(struct conf *conf, int argc, char **argv, struct buf *to)
{
	return ask_queue(conf, argc, argv, &(struct answer){.quiet = true, .into = to});
}

int client_ask(const char *spool, int argc, char **argv, unsigned how)
{
	return ask_relay(spool, argc, argv, &(struct answer){.how = how});
}

int client_ask_into(const char *spool, int argc, char **argv, struct buf *to)
{
	return ask_relay(spool, argc, argv, &(struct answer){.into = to});
}

/* One that stands still, or whose disk does, keeps nobody from what can be said without it. */
static void set_patience(int fd)
{
	const struct timeval most = {.tv_sec = TRY_SECONDS};
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
}

bool client_try_into(const char *spool, char *word, struct buf *to)
{
	int fd = control_path_connect(spool);
	const struct answer a = {.quiet = true, .into = to};
	if (fd >= 0)
		set_patience(fd);
	return fd >= 0 && ask_at(fd, spool, 1, &word, &a) == STATUS_DONE;
}

bool client_wait(const char *spool, int most_ms)
{
	static const char ping[] = "=ping\0";
	for (int64_t until_ms = clock_steady_ms() + most_ms; clock_steady_ms() < until_ms;) {
		int fd = control_path_connect(spool);
		unsigned char head[CONTROL_HEAD];
		bool answered = fd >= 0 && send_all(fd, ping, sizeof ping) &&
				read(fd, head, sizeof head) > 0;
		file_close(fd);
		if (answered)
			return true;
		nanosleep(&(struct timespec){.tv_nsec = PING_MS * 1000000L}, NULL);
	}
	return false;
}
