/* SPDX-License-Identifier: ISC */
/* sink_store - N.env and N.eml; the latter is there only when both are complete. */
#include "cmd/sink/sink_session.h"

#include "base/file_io.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool write_file(int fd, const char *data, size_t len)
{
	bool written = file_write(fd, data, len);
	return close(fd) == 0 && written;
}

/* A file that was not there before: what other runs have left stays. */
static int create_envelope(struct sink *k, char name[40])
{
	for (;;) {
		snprintf(name, 40, "%" PRIu64 ".env", k->next_file);
		int fd = openat(k->folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (fd >= 0 || errno != EEXIST)
			return fd;
		k->next_file++;
	}
}

static bool write_envelope(const struct sink_session *s, int fd)
{
	struct buf text = {0};
	buf_printf(&text, "from %s\n", s->from);
	for (int i = 0; i < s->nto; i++)
		buf_printf(&text, "to %s\n", s->to[i]);
	bool ok = write_file(fd, buf_data(&text), buf_len(&text));
	buf_fini(&text);
	return ok;
}

bool sink_store(struct sink_session *s, uint64_t *number)
{
	struct sink *k = s->sink;
	char env[40], part[40], eml[40];
	int fd = create_envelope(k, env);
	bool ok = fd >= 0 && write_envelope(s, fd);
	*number = k->next_file++;
	snprintf(part, sizeof part, ".%" PRIu64 ".part", *number);
	snprintf(eml, sizeof eml, "%" PRIu64 ".eml", *number);
	if (ok) {
		fd = openat(k->folder, part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
		ok = fd >= 0 && write_file(fd, buf_data(&s->content), buf_len(&s->content)) &&
		     renameat(k->folder, part, k->folder, eml) == 0;
	}
	if (!ok)
		fprintf(stderr, "sluice: %s/%s: %s\n", k->options->dir, eml, strerror(errno));
	return ok;
}
