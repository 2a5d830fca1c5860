/* SPDX-License-Identifier: ISC */
#include "cmd/maildrop/maildrop_leave.h"

#include "base/file_io.h"
#include "base/ident.h"
#include "base/mem.h"
#include "cmd/maildrop/maildrop_form.h"
#include "smtpd/header_in.h"
#include "smtpd/intake.h"
#include "spool/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

enum { NAME_TRIES = 100 };

struct leaving {
	const struct conf *conf;
	int folder, fd;
	char name[1 +
		  IDENT_TEXT]; /* of the unfinished file; without its dot, of the finished one */
	struct buf first, head;
};

static int put_tempfail(struct buf *error, const char *what)
{
	buf_printf(error, "%s: %s", what, strerror(errno));
	return EX_TEMPFAIL;
}

static void drop_bytes(void *owner, const char *bytes, size_t len)
{
	(void)owner;
	(void)bytes;
	(void)len;
}

static void read_header(void *owner, const char *bytes, size_t len)
{
	header_in_feed(owner, bytes, len);
}

static enum response judge_content(const struct conf *c, const struct submission *s)
{
	struct header_in header = {.sink = drop_bytes};
	struct content_in decoder = {.sink = read_header, .owner = &header};
	maildrop_form_limits(c, &decoder);
	content_in_feed(&decoder, buf_data(s->content), buf_len(s->content));
	content_in_finish(&decoder);
	header_in_finish(&header);
	header_in_fini(&header);
	return intake_judge(&decoder, &header, c->hopcount_limit);
}

static int put_refusal(enum response why, int permanent, struct buf *error)
{
	const struct response_row *row = response_row(why);
	buf_printf(error, "it would be refused: %d %s %s", row->code, row->dsn, row->text);
	return row->code >= 500 ? permanent : EX_TEMPFAIL;
}

/* The relay's judgement, by the same functions. */
static int judge_submission(struct leaving *l, const struct submission *s, struct buf *error)
{
	struct envelope *e = envelope_new();
	struct maildrop_access said = {0};
	const struct maildrop_with with = {.said = &said};
	enum response why = RESPONSE_TOO_MANY_RECIPIENTS;
	if (buf_len(&l->head) <= MAILDROP_HEAD_MAX)
		why = maildrop_form_read(l->conf, &with, buf_data(&l->head), buf_len(&l->head), e);
	maildrop_access_fini(&said);
	envelope_free(&e);
	if (why != RESPONSE_OK)
		return put_refusal(why, EX_NOUSER, error);
	why = judge_content(l->conf, s);
	return why == RESPONSE_OK ? EX_OK : put_refusal(why, EX_DATAERR, error);
}

static int open_folder(struct leaving *l, size_t size, struct buf *error)
{
	char *path = mem_printf("%s/maildrop", l->conf->spool);
	l->folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int status = l->folder < 0 ? put_tempfail(error, path) : EX_OK;
	int64_t room = l->folder < 0 ? -1 : disk_free_bytes(l->folder);
	if (room >= 0 && room < l->conf->queue_minfree + (int64_t)size) {
		buf_printf(error, "%s: there is no room", path);
		status = EX_TEMPFAIL;
	}
	free(path);
	return status;
}

/* Whoever has the unfinished name has the finished one too. */
static int open_file(struct leaving *l, struct buf *error)
{
	char id[IDENT_TEXT];
	struct stat st;
	for (int i = 0; i < NAME_TRIES; i++) {
		snprintf(l->name, sizeof l->name, ".%s", ident_text(ident_new(), id));
		l->fd = disk_open(l->folder, l->name, O_WRONLY | O_CREAT | O_EXCL);
		if (l->fd < 0 && errno != EEXIST)
			break;
		if (l->fd >= 0 && fstatat(l->folder, id, &st, AT_SYMLINK_NOFOLLOW) != 0)
			return EX_OK;
		if (l->fd >= 0) {
			disk_unlink(l->folder, l->name);
			close(l->fd);
			l->fd = -1;
		}
	}
	return put_tempfail(error, "a file cannot be made in the maildrop");
}

/* The relay reads what is its own, or its group's, or all when it is root. */
static int let_relay_read(struct leaving *l, struct buf *error)
{
	struct stat folder, file;
	if (fstat(l->folder, &folder) != 0 || fstat(l->fd, &file) != 0)
		return put_tempfail(error, "the maildrop");
	bool group = file.st_gid == folder.st_gid;
	if (!group && file.st_uid != folder.st_uid && folder.st_uid != 0) {
		buf_puts(error, "the maildrop does not give its group to new files, "
				"so the relay could not read it");
		return EX_TEMPFAIL;
	}
	return fchmod(l->fd, group ? 0640 : 0600) == 0 ? EX_OK
						       : put_tempfail(error, "the maildrop");
}

static int write_file(struct leaving *l, const struct submission *s, struct buf *error)
{
	struct iovec v[] = {
		{buf_data(&l->first), buf_len(&l->first)},
		{buf_data(&l->head), buf_len(&l->head)},
		{buf_data(s->content), buf_len(s->content)},
	};
	if (disk_write(l->fd, v, 3, 0) != 0 || disk_sync(l->fd) != 0)
		return put_tempfail(error, "the maildrop");
	return EX_OK;
}

static int sync_folder(const struct leaving *l)
{
	int fd = openat(l->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return syncfs(l->fd);
	int result = disk_sync(fd);
	close(fd);
	return result;
}

static int finish_file(struct leaving *l, struct buf *error)
{
	const char *id = l->name + 1;
	if (renameat(l->folder, l->name, l->folder, id) != 0)
		return put_tempfail(error, "the maildrop");
	if (sync_folder(l) == 0)
		return EX_OK;
	int status = put_tempfail(error, "the maildrop cannot be synced");
	/* Gone already: the relay has taken it, and syncs for itself. */
	return disk_unlink(l->folder, id) != 0 && errno == ENOENT ? EX_OK : status;
}

static int leave_file(struct leaving *l, const struct submission *s, struct buf *error)
{
	int status = open_folder(l, buf_len(&l->head) + buf_len(s->content), error);
	if (status == EX_OK)
		status = open_file(l, error);
	if (status != EX_OK)
		return status;
	status = let_relay_read(l, error);
	if (status == EX_OK)
		status = write_file(l, s, error);
	if (status == EX_OK)
		status = finish_file(l, error);
	if (status != EX_OK)
		disk_unlink(l->folder, l->name);
	return status;
}

int maildrop_leave(const struct conf *c, const struct submission *s, struct buf *error)
{
	struct leaving l = {.conf = c, .folder = -1, .fd = -1};
	maildrop_form_put(&l.first, &l.head, s);
	/* The limits of a faulty file may not be the relay's, which judges by those that it has. */
	int status = c->faulty ? EX_OK : judge_submission(&l, s, error);
	if (status == EX_OK)
		status = leave_file(&l, s, error);
	file_close(l.fd);
	file_close(l.folder);
	buf_fini(&l.first);
	buf_fini(&l.head);
	return status;
}
