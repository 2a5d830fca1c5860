/* SPDX-License-Identifier: ISC */
/* A queue of format 1 that this program has begun to work on, half of it: its envelopes have no generations. */
#include "harness.h"

#include "base/crc32c.h"
#include "spool/payload.h"
#include "spool/segment.h"

#include <fcntl.h>

enum { SIZE = 64 << 10, CONTENT_BYTES = 100 };

/* A segment as version 1 has it. */
static struct old {
	uint8_t bytes[SIZE];
	uint32_t seed;
	uint64_t seq, end;
} old;

static char *path_of(uint64_t seq)
{
	char name[SEGMENT_NAME];
	return mem_printf("%s/log/%s", h.conf->spool, segment_name(seq, name));
}

static void begin_segment(uint64_t seq)
{
	const struct segment_head head = {.version = 1,
					  .seq = seq,
					  .created = ident_new(),
					  .salt = seq * 77,
					  .first = seq == 1};
	memset(&old, 0, sizeof old);
	segment_head_put(old.bytes, &head);
	memcpy(old.bytes + SEGMENT_HEAD_AGAIN, old.bytes, SEGMENT_HEAD);
	old.seed = segment_head_seed(&head);
	old.seq = seq;
	old.end = SEGMENT_BEGIN;
}

static uint64_t add(uint8_t type, uint64_t id, const void *payload, size_t len)
{
	const uint64_t at = old.end;
	struct record r = {
		.type = type, .id = id, .length = (uint32_t)len, .crc = crc32c(0, payload, len)};
	record_put(old.bytes + at, old.seed, &r);
	memcpy(old.bytes + at + RECORD_HEAD, payload, len);
	old.end += record_size(r.length);
	return at;
}

static void end_segment(void)
{
	char *path = path_of(old.seq);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_int_equal(pwrite(fd, old.bytes, sizeof old.bytes, 0), SIZE);
	close(fd);
	free(path);
}

static void add_envelope(uint8_t type, const struct envelope *e, uint64_t seq, uint64_t offset)
{
	struct buf b = {0};
	payload_put_envelope(&b, e, &(struct content_place){.seq = seq, .offset = offset}, 0);
	add(type, e->id, buf_data(&b), buf_len(&b));
	buf_fini(&b);
}

/* A message of two recipients that has been put off twice: each time its envelope went to the next segment. Its id. */
static uint64_t write_queue(void)
{
	char content[CONTENT_BYTES];
	memset(content, 'a' + CONTENT_BYTES % 26, sizeof content);
	harness_close(&h);
	harness_shell("rm -rf '%s'/log/* '%s'/large/*", h.conf->spool, h.conf->spool);
	harness_shell("echo 'sluice spool 1' > '%s/format'", h.conf->spool, "");
	struct envelope *e = harness_envelope(2);
	uint64_t id = e->id;
	e->size = CONTENT_BYTES;
	begin_segment(1);
	uint64_t at = add(RECORD_CONTENT, id, content, sizeof content);
	add_envelope(RECORD_ENVELOPE, e, 1, at);
	end_segment();
	for (uint64_t seq = 2; seq <= 3; seq++) {
		begin_segment(seq);
		e->rounds++;
		e->due_ms = clock_wall_ms();
		add_envelope(RECORD_REPLACEMENT, e, 1, at);
		end_segment();
	}
	begin_segment(4);
	end_segment();
	envelope_free(&e);
	return id;
}

static void deliver_first_and_crash(uint64_t id)
{
	harness_open(&h);
	harness_credit(&h, 1);
	struct envelope *e = harness_take(&h);
	assert_true(e->id == id && e->rounds == 2);
	harness_delivered(&h, id, 0, VERDICT_SENT);
	harness_count(&h);
	envelope_free(&e);
	harness_crash(&h);
}

static void only_the_second_is_left(void)
{
	harness_open(&h);
	harness_credit(&h, 1);
	struct envelope *e = harness_take(&h);
	assert_int_equal(e->rounds, 2);
	assert_true(e->rcpt[0].done);
	assert_false(e->rcpt[1].done);
	envelope_free(&e);
}

/* What a checkpoint says that no start reads, or that has gone, may have held envelopes. */
static void what_was_sent_is_known_though_a_start_passes_over_the_first_segments(void **state)
{
	(void)state;
	uint64_t id = write_queue();
	deliver_first_and_crash(id);
	char *path = mem_printf("%s/log/checkpoint", h.conf->spool);
	struct buf b = {0};
	buf_puts(&b, "sluice checkpoint 2\n0000000000000001.seg skip\n"
		     "0000000000000002.seg gone\n");
	buf_printf(&b, "crc %08x\n", crc32c(0, buf_data(&b), buf_len(&b)));
	FILE *f = fopen(path, "w");
	fwrite(buf_data(&b), 1, buf_len(&b), f);
	fclose(f);
	free(path);
	buf_fini(&b);
	only_the_second_is_left();
}

static void what_was_sent_is_known_where_an_envelope_was_marked(void **state)
{
	(void)state;
	uint64_t id = write_queue();
	deliver_first_and_crash(id);
	const uint8_t garbage = RECORD_GARBAGE;
	const uint64_t at = SEGMENT_BEGIN + record_size(CONTENT_BYTES);
	char *path = path_of(1);
	int fd = open(path, O_WRONLY);
	assert_int_equal(pwrite(fd, &garbage, 1, (off_t)at + RECORD_FLAGS_AT), 1);
	close(fd);
	free(path);
	only_the_second_is_left();
}

/* Work of this program, and of one before it that has counted all envelopes. */
static void what_was_sent_before_the_queue_was_converted_counts_as_well(void **state)
{
	(void)state;
	struct buf b = {0};
	uint64_t id = write_queue();
	char *path = path_of(4);
	struct spool_delivered *d = mem_zalloc(sizeof *d + sizeof d->of[0]);
	d->id = id;
	d->n = 1;
	d->of[0].verdict = verdict_new(VERDICT_SENT, 250, NULL, "mx", "said");
	payload_put_delivery(&b, d, 0);
	delivered_free(d);
	assert_int_equal(unlink(path), 0);
	begin_segment(4);
	add(RECORD_DELIVERY, id, buf_data(&b) + 4, buf_len(&b) - 4); /* without its generation */
	end_segment();
	free(path);
	buf_fini(&b);
	only_the_second_is_left();
}

static void the_last_envelope_holds(void **state)
{
	(void)state;
	uint64_t id = write_queue();
	harness_open(&h);
	struct spool_command *c = harness_ask(&h, SPOOL_SHOW, id, 0, 0);
	assert_int_equal(c->nrow, 1);
	assert_int_equal(c->row[0].envelope->rounds, 2);
	spool_command_free(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HARNESS_TEST(the_last_envelope_holds),
		HARNESS_TEST(what_was_sent_is_known_though_a_start_passes_over_the_first_segments),
		HARNESS_TEST(what_was_sent_is_known_where_an_envelope_was_marked),
		HARNESS_TEST(what_was_sent_before_the_queue_was_converted_counts_as_well),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
