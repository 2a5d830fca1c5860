/* SPDX-License-Identifier: ISC */
/* The log of a node, made again from what its copy holds: whoever adopts it finds no message that is done. */
#include "tests/unit/spool/harness.h"

#include "base/crc32c.h"
#include "replica/format.h"
#include "replica/rebuild.h"
#include "spool/disk.h"
#include "spool/replicate.h"
#include "spool/spool_look.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <unistd.h>

enum { MESSAGES = 4096, PIECE = 1 << 18 };

/* The stream: messages in their order, and how far each segment has been sent. */
static struct {
	struct loop *loop;
	struct message {
		struct replica_head head;
		uint8_t *payload;
		bool purged;
	} message[MESSAGES];
	int n;
	struct sent {
		uint64_t seq, end; /* bytes */
		struct content_file *file;
	} sent[MESSAGES];
	int nsent;
	atomic_int gone;
} stream;

static void say(enum replica_type type, uint64_t of, uint64_t offset, uint64_t size,
		const void *bytes, size_t len)
{
	assert_true(stream.n < MESSAGES);
	struct message *m = &stream.message[stream.n++];
	m->payload = mem_alloc(len + 1);
	if (len > 0)
		memcpy(m->payload, bytes, len);
	m->head = (struct replica_head){.type = type,
					.epoch = 1,
					.number = (uint64_t)stream.n,
					.of = of,
					.offset = offset,
					.size = size,
					.length = (uint32_t)len,
					.crc = crc32c(0, bytes, len)};
}

static struct sent *sent_of(uint64_t seq)
{
	for (int i = 0; i < stream.nsent; i++)
		if (stream.sent[i].seq == seq)
			return &stream.sent[i];
	fail_msg("a segment that was never named");
	return NULL;
}

static void send_until(struct sent *s, uint64_t end)
{
	static uint8_t piece[PIECE];
	uint64_t size = 0;
	int64_t changed_ms;
	assert_int_equal(disk_size(s->file->fd, &size, &changed_ms), 0);
	while (s->end < end) {
		size_t len = end - s->end < PIECE ? (size_t)(end - s->end) : PIECE;
		assert_int_equal(pread(s->file->fd, piece, len, (off_t)s->end), (ssize_t)len);
		say(REPLICA_LOG, s->seq, s->end, size, piece, len);
		s->end += len;
	}
}

static void purge(uint64_t seq)
{
	for (int i = 0; i < stream.n; i++) {
		struct message *m = &stream.message[i];
		if (m->head.of == seq &&
		    (m->head.type == REPLICA_LOG || m->head.type == REPLICA_MARKS))
			m->purged = true;
	}
	atomic_fetch_add(&stream.gone, 1);
}

static void hear(void *owner, struct note *note)
{
	struct replicate *r = (struct replicate *)note;
	(void)owner;
	if (note->type == REPLICATE_SEGMENT) {
		stream.sent[stream.nsent] = (struct sent){.seq = r->of, .file = r->file};
		r->file = NULL;
		send_until(&stream.sent[stream.nsent++], r->end);
	} else if (note->type == REPLICATE_WRITTEN) {
		send_until(sent_of(r->of), r->end);
	} else if (note->type == REPLICATE_MARKED) {
		say(REPLICA_MARKS, r->of, 0, 0, r->bytes, r->n);
	} else if (note->type == REPLICATE_CHECKPOINT) {
		say(REPLICA_CHECKPOINT, 0, 0, 0, r->bytes, r->n);
	} else if (note->type == REPLICATE_GONE) {
		purge(r->of);
	}
	content_file_unref(r->file);
	free(r);
}

static int open_with_stream(void **state)
{
	struct buf error = {0};
	(void)state;
	harness_init(&h);
	memset(&stream, 0, sizeof stream);
	stream.loop = loop_new("keeper", hear, NULL, NULL);
	h.spool = spool_new(h.conf, h.loop, &error);
	assert_non_null(h.spool);
	say(REPLICA_BEGIN, 1, 0, 0, "", 0);
	say(REPLICA_COMPLETE, 0, 0, 0, "", 0);
	spool_replicate(h.spool, stream.loop, false, false);
	loop_start(stream.loop);
	spool_start(h.spool);
	buf_fini(&error);
	return 0;
}

static int forget_stream(void **state)
{
	for (int i = 0; i < stream.n; i++)
		free(stream.message[i].payload);
	for (int i = 0; i < stream.nsent; i++)
		content_file_unref(stream.sent[i].file);
	return harness_teardown(state);
}

static uint64_t work(void)
{
	uint64_t waits = harness_lose_proofs(&h);
	for (int i = 0; i < 3000 && atomic_load(&stream.gone) == 0; i++)
		usleep(10000); /* a segment is removed before the keeper hears so */
	assert_true(atomic_load(&stream.gone) > 0);
	harness_close(&h);
	loop_stop(stream.loop);
	loop_free(&stream.loop);
	return waits;
}

static void keep(int file, uint64_t *end, const struct message *m)
{
	uint8_t *bytes = mem_alloc(REPLICA_HEAD + m->head.length);
	replica_head_put(bytes, &m->head);
	memcpy(bytes + REPLICA_HEAD, m->payload, m->head.length);
	assert_true(rebuild_keep(file, end, bytes, REPLICA_HEAD + (size_t)m->head.length));
	free(bytes);
}

/* What another node makes of it. One of a queue of hundreds of gigabytes comes without its checkpoint. */
static void adopted_is_only(uint64_t waits, bool with_checkpoint)
{
	struct buf error = {0};
	uint64_t end = 0, id[10];
	bool hollow;
	char *path = mem_printf("%s/adopted", h.folder);
	harness_shell("mkdir '%s'", path, "");
	int top = open(path, O_RDONLY | O_DIRECTORY);
	int file = openat(top, "stream", O_RDWR | O_CREAT, 0600);
	for (int i = 0; i < stream.n; i++)
		if (!stream.message[i].purged &&
		    (with_checkpoint || stream.message[i].head.type != REPLICA_CHECKPOINT))
			keep(file, &end, &stream.message[i]);
	assert_true(rebuild_run(top, file, end, 0, &hollow));
	struct spool_look *l = spool_look_new(h.conf, path, &error);
	assert_non_null(l);
	assert_int_equal(spool_look_ids(l, 0, id, 10), 1);
	assert_true(id[0] == waits);
	spool_look_free(&l);
	close(file);
	close(top);
	free(path);
}

static void without_its_checkpoint(void **state)
{
	(void)state;
	adopted_is_only(work(), false);
}

static void with_its_checkpoint(void **state)
{
	(void)state;
	adopted_is_only(work(), true);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_with_stream, forget_stream)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_its_checkpoint),
		TEST(with_its_checkpoint),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
