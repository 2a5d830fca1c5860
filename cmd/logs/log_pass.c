/* SPDX-License-Identifier: ISC */
#include "cmd/logs/log_pass.h"

#include "base/mem.h"
#include "cmd/logs/log_source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where Debian's syslogd puts what it gets as mail. */
static const char syslog_file[] = "/var/log/mail.log";

static const char *path_of(const struct conf *c)
{
	if (strncmp(c->log, "syslog", 6) == 0)
		return syslog_file;
	return strcmp(c->log, "stderr") == 0 ? NULL : c->log;
}

/* A pipe is read once, a log several times. The file has no name, and is gone with the program. */
static char *keep_input(FILE *from, const char *name)
{
	char piece[64 << 10];
	FILE *kept = from ? tmpfile() : NULL;
	for (size_t n; kept && (n = fread(piece, 1, sizeof piece, from)) > 0;)
		if (fwrite(piece, 1, n, kept) != n)
			break;
	if (!kept || ferror(from) || fflush(kept) != 0 || ferror(kept)) {
		fprintf(stderr, "sluice: can't keep %s: %s\n", name, strerror(errno));
		return NULL;
	}
	return mem_printf("/dev/fd/%d", fileno(kept));
}

static char *keep_stream(const char *path)
{
	if (strcmp(path, "-") == 0)
		return keep_input(stdin, "standard input");
	FILE *from = fopen(path, "re");
	char *kept = keep_input(from, path);
	if (from)
		fclose(from);
	return kept;
}

/* Standard input, or a pipe that has a name, as those that shells make of <(...). */
static bool is_stream(const char *path)
{
	struct stat st;
	return strcmp(path, "-") == 0 || (stat(path, &st) == 0 && S_ISFIFO(st.st_mode));
}

bool log_pass_files(struct log_files *f, const struct conf *c, const char *path)
{
	struct buf error = {0};
	bool stream = path && is_stream(path);
	char *kept = stream ? keep_stream(path) : NULL;
	if (stream && !kept)
		return false;
	path = stream ? kept : path ? path : path_of(c);
	if (path)
		log_files_find(f, path, &error);
	else
		buf_puts(&error, "the log goes to standard error, where it can't be read: say "
				 "--log FILE, or journalctl -u sluice -o cat | ... --log -\n");
	for (char *rest = buf_cstr(&error), *line; (line = strsep(&rest, "\n")) && *line;)
		fprintf(stderr, "sluice: %s\n", line);
	buf_fini(&error);
	free(kept);
	return f->n > 0;
}

static void read_file(const struct log_file *f, struct log_source *s, struct log_span span,
		      log_pass_may *may, log_pass_take *take, void *context)
{
	const char *text;
	size_t len;
	struct log_line l;
	while (log_source_line(s, &text, &len))
		if ((!may || may(context, text, len)) &&
		    log_line_read(&l, text, len, f->written_ms) && l.wall_ms >= span.from_ms &&
		    l.wall_ms < span.to_ms)
			take(context, &l, text, len);
}

static void tell_fault(struct log_file *f, const char *error)
{
	if (!f->faulty)
		fprintf(stderr, "sluice: %s\n", error);
	f->faulty = true;
}

/* A file begins within the span, or before it; and where the next one begins before it, too, there is
 * nothing of it here. */
static bool may_have(const struct log_files *f, int i, struct log_span span)
{
	bool early = i + 1 < f->n && f->of[i + 1].first_ms < span.from_ms;
	int64_t first_ms = f->of[i].first_ms;
	return first_ms == LOG_FILE_NO_TIME || (!early && first_ms < span.to_ms);
}

bool log_pass(struct log_files *f, struct log_span span, log_pass_may *may, log_pass_take *take,
	      void *context)
{
	bool good = true;
	struct buf error = {0};
	for (int i = 0; i < f->n; i++) {
		if (!may_have(f, i, span))
			continue;
		struct log_source *s = log_source_open(f->of[i].path, &error);
		if (s)
			read_file(&f->of[i], s, span, may, take, context);
		if (!s || !log_source_close(&s, &error)) {
			tell_fault(&f->of[i], buf_cstr(&error));
			buf_clear(&error);
			good = false;
		}
	}
	buf_fini(&error);
	return good;
}
