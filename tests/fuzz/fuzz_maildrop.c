/* SPDX-License-Identifier: ISC */
/* A file that somebody has left in the maildrop. What is taken has a right sum, a sender and
 * recipients, and behind the fields that the relay adds the bytes of the file.
 *
 * An input is the file; or, when it begins with another byte than the first line does, what stands
 * behind a first line that is right. */
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/keeper.h"

#include "base/crc32c.h"
#include "base/ident.h"
#include "cmd/maildrop/maildrop_take.h"
#include "spool/disk.h"

#include <fcntl.h>

enum { ID = 4711 };

static struct spool *keeper;
static struct loop *asker;
static struct conf *conf;
static int folder;

static void receive(void *owner, struct note *note)
{
	(void)owner;
	assert(note->type == SPOOL_STORED);
	free(note);
}

static void begin(void)
{
	char name[IDENT_TEXT];
	fuzz_quiet();
	keeper = keeper_new();
	asker = loop_new("maildrop", receive, NULL, NULL);
	conf = conf_defaults();
	fuzz_folder_make(ident_text(ID, name));
	folder = open(fuzz_folder()->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void write_file(const uint8_t *data, size_t size, struct buf *whole)
{
	if (size > 0 && *data != 's')
		buf_printf(whole, "sluice maildrop 1 %08x %zu\n", crc32c(0, data, size), size);
	buf_append(whole, data, size);
	int fd = open(fuzz_folder()->file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	bool good =
		fd >= 0 && write(fd, buf_data(whole), buf_len(whole)) == (ssize_t)buf_len(whole);
	if (!good)
		abort();
	close(fd);
}

static void check_taken(const struct spool_store *m, struct buf *file)
{
	size_t len, head = 0;
	const char *bytes = keeper_content(m, &len);
	struct maildrop_first first;
	assert(maildrop_form_first(buf_data(file), buf_len(file), &first));
	assert(first.length + first.size == buf_len(file));
	const char *rest = buf_data(file) + first.length;
	assert(crc32c(0, rest, first.size) == first.crc);
	head = maildrop_form_head_end(rest, first.size, 0);
	assert(head > 0 && m->taken && m->envelope->sender && m->envelope->nrcpt > 0);
	assert(len >= 10 && memcmp(bytes, "Received: ", 10) == 0);
	assert(m->envelope->size == len);
	/* Missing fields are added at the end of the header, so it is the body that is compared. */
	const char *body = memmem(rest + head, first.size - head, "\r\n\r\n", 4);
	size_t body_len = body ? (size_t)(rest + first.size - body) : 0;
	assert(len >= body_len && memcmp(bytes + len - body_len, body ? body : "", body_len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf file;
	if (!keeper)
		begin();
	buf_init(&file);
	write_file(data, size, &file);
	struct take *t = take_new(ID);
	const struct take_means with = {
		.conf = conf, .spool = keeper, .loop = asker, .folder = folder};
	enum take_result result = take_store(t, &with);
	mailbox_drain(&keeper->loop->mailbox);
	assert((result == TAKE_ASKED) == (keeper->nwaiting == 1));
	assert((result == TAKE_BAD) == (t->why != NULL));
	if (result == TAKE_ASKED) {
		check_taken(keeper->waiting[0], &file);
		keeper_answer(keeper, true);
		mailbox_drain(&asker->mailbox);
	}
	take_free(&t);
	buf_fini(&file);
	return 0;
}
