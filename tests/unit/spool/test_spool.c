/* SPDX-License-Identifier: ISC */
#include "harness.h"

#include "base/content.h"
#include "base/metrics.h"

#include <errno.h>

static void a_message_is_stored_handed_over_delivered_and_gone(void **state)
{
	(void)state;
	harness_credit(&h, 10);
	uint64_t id = harness_store(&h, 2, 2000);
	struct envelope *e = harness_take(&h);
	harness_wait(&h, &h.nstored, 1);
	assert_int_equal(h.stored[0], id);
	assert_int_equal(e->id, id);
	assert_int_equal(e->nrcpt, 2);
	harness_delivered(&h, id, 0, VERDICT_SENT);
	harness_delivered(&h, id, 1, VERDICT_SENT);
	harness_release(&h, id, NULL);
	assert_int_equal(harness_count(&h), 0);
	envelope_free(&e);
}

static void without_credit_a_message_waits(void **state)
{
	(void)state;
	uint64_t id = harness_store(&h, 1, 100);
	harness_wait(&h, &h.nstored, 1);
	assert_int_equal(h.narrival, 0);
	assert_int_equal(metrics_sum(METRIC_queue_incoming), 1);
	harness_credit(&h, 1);
	struct envelope *e = harness_take(&h);
	assert_int_equal(e->id, id);
	assert_int_equal(metrics_sum(METRIC_queue_incoming), 0);
	harness_release(&h, id, NULL);
	envelope_free(&e);
	harness_recovered(&h, 0);
}

static bool reads_as_written(const struct content *c)
{
	char bytes[2000];
	uint32_t sum = 0;
	assert_in_range(c->size, 1, sizeof bytes);
	assert_int_equal(content_read(c, 0, bytes, sizeof bytes), c->size);
	return content_intact(c, &sum, 0, bytes, c->size);
}

static void what_comes_from_the_queue_is_not_held_in_memory_and_damage_to_it_shows(void **state)
{
	(void)state;
	int64_t before = content_memory_bytes();
	uint64_t id = harness_store(&h, 1, 2000);
	harness_wait(&h, &h.nstored, 1);
	harness_credit(&h, 1);
	harness_wait(&h, &h.narrival, 1);
	const struct content *c = h.arrival[0]->content;
	assert_null(c->memory);
	assert_int_equal(content_memory_bytes(), before);
	assert_true(reads_as_written(c));
	char byte;
	assert_int_equal(pread(c->file->fd, &byte, 1, (off_t)c->offset), 1);
	assert_int_equal(pwrite(c->file->fd, "#", 1, (off_t)c->offset), 1);
	assert_false(reads_as_written(c));
	assert_int_equal(errno, EBADMSG);
	assert_int_equal(pwrite(c->file->fd, &byte, 1, (off_t)c->offset), 1);
	struct envelope *e = harness_take(&h);
	harness_release(&h, id, NULL);
	envelope_free(&e);
}

static void a_deferred_message_comes_back_when_it_is_due(void **state)
{
	(void)state;
	harness_credit(&h, 1);
	uint64_t id = harness_store(&h, 2, 5000);
	struct envelope *e = harness_take(&h);
	e->due_ms = clock_wall_ms() + 200;
	e->rounds = 1;
	e->rcpt[0].done = true;
	e->rcpt[1].last = verdict_new(VERDICT_DEFERRED, 450, "4.2.1", "mx", "busy");
	e->rcpt[1].tries = 1;
	int64_t due_ms = e->due_ms;
	harness_release(&h, id, e);
	e = harness_take(&h);
	assert_true(clock_wall_ms() >= due_ms);
	assert_int_equal(e->rounds, 1);
	assert_true(e->rcpt[0].done);
	assert_string_equal(e->rcpt[1].last->text, "busy");
	harness_release(&h, id, NULL);
	harness_recovered(&h, 0);
	envelope_free(&e);
}

static void incoming_and_deferred_alternate(void **state)
{
	(void)state;
	harness_credit(&h, 10);
	for (int i = 0; i < 10; i++)
		harness_store(&h, 1, 10);
	harness_wait(&h, &h.narrival, 10);
	harness_credit(&h, -10);
	for (int i = 0; i < 10; i++) {
		struct envelope *e = harness_take(&h);
		e->due_ms = e->rounds = 1;
		harness_release(&h, e->id, e);
	}
	for (int i = 0; i < 10; i++)
		harness_store(&h, 1, 10);
	harness_wait(&h, &h.nstored, 20);
	assert_int_equal(h.narrival, 10);
	harness_credit(&h, 10);
	harness_wait(&h, &h.narrival, 20);
	uint32_t deferred = 0;
	for (int i = 0; i < 10; i++) {
		struct envelope *e = harness_take(&h);
		deferred += e->rounds;
		envelope_free(&e);
	}
	assert_int_equal(deferred, 5);
}

static void a_stored_message_is_there_after_a_crash(void **state)
{
	(void)state;
	uint64_t id = harness_store(&h, 3, 3000);
	harness_wait(&h, &h.nstored, 1);
	harness_crash(&h);
	harness_open(&h);
	harness_credit(&h, 1);
	struct envelope *e = harness_take(&h);
	assert_int_equal(e->id, id);
	assert_int_equal(e->nrcpt, 3);
	assert_string_equal(e->rcpt[2].address, "recipient2@example.com");
	envelope_free(&e);
}

static void a_recorded_delivery_is_not_repeated_after_a_crash(void **state)
{
	(void)state;
	harness_credit(&h, 1);
	uint64_t id = harness_store(&h, 3, 3000);
	struct envelope *e = harness_take(&h);
	envelope_free(&e);
	harness_delivered(&h, id, 1, VERDICT_SENT);
	harness_delivered(&h, id, 2, VERDICT_FAILED);
	harness_recovered(&h, 1);
	harness_crash(&h);
	harness_open(&h);
	harness_credit(&h, 1);
	e = harness_take(&h);
	assert_int_equal(e->id, id);
	assert_false(e->rcpt[0].done);
	assert_true(e->rcpt[1].done);
	/* qmgr records a failure when its report is stored. */
	assert_true(e->rcpt[2].done);
	assert_int_equal(e->rcpt[2].last->class, VERDICT_FAILED);
	envelope_free(&e);
}

static void a_message_that_was_delivered_wholly_is_gone_after_a_crash(void **state)
{
	(void)state;
	harness_credit(&h, 1);
	uint64_t id = harness_store(&h, 1, 3000);
	struct envelope *e = harness_take(&h);
	envelope_free(&e);
	harness_delivered(&h, id, 0, VERDICT_SENT);
	harness_recovered(&h, 1);
	harness_crash(&h);
	harness_open(&h);
	harness_recovered(&h, 0);
}

static void segments_vanish_when_all_is_finished(void **state)
{
	(void)state;
	harness_credit(&h, 100);
	harness_pass(&h, 300);
	assert_in_range(harness_fewest_segments(&h, 2), 0, 2);
	harness_crash(&h);
	harness_open(&h);
	harness_recovered(&h, 0);
}

static void large_content_has_a_file_of_its_own(void **state)
{
	(void)state;
	struct spool_store *s = mem_zalloc(sizeof *s);
	s->note.type = SPOOL_STORE;
	s->reply_to = h.loop;
	s->envelope = harness_envelope(1);
	size_t size = 3 << 20;
	s->envelope->size = size;
	uint64_t id = s->envelope->id;
	char *bytes = mem_alloc(size);
	memset(bytes, 'a' + (int)(size % 26), size);
	s->file = spool_file_new(h.spool, id);
	assert_non_null(s->file);
	for (size_t at = 0; at < size; at += 1 << 16)
		assert_int_equal(spool_file_write(s->file, bytes + at, 1 << 16), 0);
	free(bytes);
	assert_int_equal(spool_file_size(s->file), size);
	loop_post(spool_loop(h.spool), &s->note);
	harness_wait(&h, &h.nstored, 1);
	struct spool_file *left = spool_file_new(h.spool, ident_new());
	harness_crash(&h);
	spool_file_discard(&left);
	harness_open(&h);
	harness_credit(&h, 1);
	struct envelope *e = harness_take(&h);
	assert_int_equal(harness_files(&h, "large"), 1); /* the other has no envelope */
	harness_release(&h, id, NULL);
	envelope_free(&e);
	for (int i = 0; i < 3000 && harness_files(&h, "large") > 0; i++)
		usleep(10000);
	assert_int_equal(harness_files(&h, "large"), 0);
}

static void a_second_process_is_refused(void **state)
{
	(void)state;
	struct buf error;
	buf_init(&error);
	assert_null(spool_new(h.conf, h.loop, &error));
	assert_non_null(strstr(buf_cstr(&error), "another process"));
	buf_fini(&error);
}

static void a_newer_format_is_refused(void **state)
{
	(void)state;
	harness_close(&h);
	harness_shell("echo 'sluice spool 3' > '%s/format'", h.conf->spool, "");
	struct buf error;
	buf_init(&error);
	assert_null(spool_new(h.conf, h.loop, &error));
	assert_non_null(strstr(buf_cstr(&error), "format 3"));
	buf_fini(&error);
}

static void a_full_disk_refuses_mail_until_there_is_room(void **state)
{
	(void)state;
	harness_close(&h);
	int64_t minfree = h.conf->queue_minfree;
	h.conf->queue_minfree = INT64_MAX;
	harness_open(&h);
	harness_store(&h, 1, 100);
	harness_wait(&h, &h.nrefused, 1);
	assert_false(spool_accepting(h.spool));
	struct conf *room = conf_defaults();
	room->queue_minfree = minfree;
	spool_reload(h.spool, room);
	conf_unref(room);
	for (int i = 0; i < 3000 && !spool_accepting(h.spool); i++)
		usleep(10000);
	assert_true(spool_accepting(h.spool));
	harness_store(&h, 1, 100);
	harness_wait(&h, &h.nstored, 1);
	h.conf->queue_minfree = minfree;
}

static void the_spool_is_behind_until_qmgr_has_caught_up(void **state)
{
	(void)state;
	harness_credit(&h, 1);
	harness_store(&h, 1, 100);
	harness_wait(&h, &h.narrival, 1);
	assert_false(spool_behind(h.spool, "example.org"));
	for (int i = 0; i < 3; i++)
		harness_store(&h, 1, 100);
	harness_wait(&h, &h.nstored, 4);
	for (int i = 0; i < 3000 && !spool_behind(h.spool, "example.org"); i++)
		usleep(10000);
	assert_true(spool_behind(h.spool, "example.org"));
	harness_credit(&h, 1); /* not yet */
	harness_wait(&h, &h.narrival, 2);
	assert_true(spool_behind(h.spool, "example.org"));
	harness_credit(&h, 5);
	harness_wait(&h, &h.narrival, 4);
	for (int i = 0; i < 3000 && spool_behind(h.spool, "example.org"); i++)
		usleep(10000);
	assert_false(spool_behind(h.spool, "example.org"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HARNESS_TEST(a_message_is_stored_handed_over_delivered_and_gone),
		HARNESS_TEST(without_credit_a_message_waits),
		HARNESS_TEST(
			what_comes_from_the_queue_is_not_held_in_memory_and_damage_to_it_shows),
		HARNESS_TEST(a_deferred_message_comes_back_when_it_is_due),
		HARNESS_TEST(incoming_and_deferred_alternate),
		HARNESS_TEST(a_stored_message_is_there_after_a_crash),
		HARNESS_TEST(a_recorded_delivery_is_not_repeated_after_a_crash),
		HARNESS_TEST(a_message_that_was_delivered_wholly_is_gone_after_a_crash),
		HARNESS_TEST(segments_vanish_when_all_is_finished),
		HARNESS_TEST(large_content_has_a_file_of_its_own),
		HARNESS_TEST(a_second_process_is_refused),
		HARNESS_TEST(a_newer_format_is_refused),
		HARNESS_TEST(a_full_disk_refuses_mail_until_there_is_room),
		HARNESS_TEST(the_spool_is_behind_until_qmgr_has_caught_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
