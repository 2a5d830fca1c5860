/* SPDX-License-Identifier: ISC */
#include "harness.h"

#include "spool/record.h"
#include "spool/scan.h"
#include "spool/segment.h"

#include <fcntl.h>

/* The first segment that holds records: its path, malloc'd, and where its records end. */
static char *first_segment(uint64_t *end)
{
	for (uint64_t seq = 1; seq < 1000; seq++) {
		char name[SEGMENT_NAME];
		char *path = mem_printf("%s/log/%s", h.conf->spool, segment_name(seq, name));
		int fd = open(path, O_RDONLY);
		uint8_t bytes[SEGMENT_HEAD];
		struct segment_head head;
		if (fd >= 0 && pread(fd, bytes, sizeof bytes, 0) == SEGMENT_HEAD &&
		    segment_head_get(bytes, &head)) {
			struct scan scan;
			scan_init(&scan, fd, segment_head_seed(&head),
				  (uint64_t)lseek(fd, 0, SEEK_END));
			while (scan_next(&scan) == SCAN_RECORD)
				;
			*end = scan.from;
			scan_fini(&scan);
			close(fd);
			if (*end > SEGMENT_BEGIN)
				return path;
		}
		free(path);
	}
	fail_msg("no segment with records");
	return NULL;
}

static void overwrite(const char *path, uint64_t at, const void *bytes, size_t len)
{
	int fd = open(path, O_WRONLY);
	assert_int_equal(pwrite(fd, bytes, len, (off_t)at), (ssize_t)len);
	close(fd);
}

static void store_and_stop(int n)
{
	for (int i = 0; i < n; i++) {
		harness_store(&h, 1, 200);
		harness_wait(&h, &h.nstored, i + 1);
	}
	harness_close(&h);
}

/* Where the nth record of this type lies (from 0; any type: 0). */
static bool find(const char *path, uint8_t type, int nth, uint64_t *from, uint64_t *to)
{
	uint8_t bytes[SEGMENT_HEAD];
	struct segment_head head;
	struct scan scan;
	int fd = open(path, O_RDONLY);
	assert_int_equal(pread(fd, bytes, sizeof bytes, 0), SEGMENT_HEAD);
	assert_true(segment_head_get(bytes, &head));
	scan_init(&scan, fd, segment_head_seed(&head), (uint64_t)lseek(fd, 0, SEEK_END));
	bool found = false;
	while (!found && scan_next(&scan) == SCAN_RECORD)
		found = (!type || scan.record.type == type) && nth-- == 0;
	*from = scan.from;
	*to = scan.to;
	scan_fini(&scan);
	close(fd);
	return found;
}

static void put_back(void)
{
	harness_shell("rm -rf '%s/log' && mkdir '%s/log'", h.conf->spool, h.conf->spool);
	harness_shell("cp -a '%s'/saved/* '%s/log'", h.folder, h.conf->spool);
}

/* The log as a kill leaves it, behind the third message: nothing says yet that it was synced. It is
 * kept in saved/. The path of its segment, and where the third message lies. */
static char *killed_after_three(uint64_t *from, uint64_t *to)
{
	uint64_t end;
	for (int i = 0; i < 3; i++) {
		harness_store(&h, 1, 200);
		harness_wait(&h, &h.nstored, i + 1);
	}
	harness_crash(&h);
	harness_shell("cp -a --sparse=always '%s/log' '%s/saved'", h.conf->spool, h.folder);
	char *path = first_segment(&end);
	assert_true(find(path, RECORD_CONTENT, 2, from, to));
	assert_true(find(path, RECORD_ENVELOPE, 2, &end, to));
	return path;
}

static void a_tail_torn_at_any_byte_costs_only_the_last_message(void **state)
{
	(void)state;
	uint64_t from, to;
	char *path = killed_after_three(&from, &to);
	uint64_t last = to - from;
	for (uint64_t cut = 1; cut <= last; cut += cut < 40 || last - cut < 40 ? 1 : 7) {
		put_back();
		assert_int_equal(truncate(path, (off_t)(to - cut)), 0);
		assert_int_equal(truncate(path, 256 << 10), 0); /* it was preallocated */
		harness_open(&h);
		/* The padding may go; a head or payload may not. */
		while (harness_count(&h) < 2)
			usleep(1000);
		assert_in_range(harness_count(&h), 2, cut < 8 ? 3 : 2);
		harness_close(&h);
		assert_int_equal(harness_files(&h, "quarantine"), 0);
	}
	free(path);
}

/* Killed before it had cut the tail, the next start finds it in front of segments of its own. */
static void a_tail_torn_before_an_earlier_start_is_no_damage(void **state)
{
	(void)state;
	uint64_t from, to;
	char *path = killed_after_three(&from, &to);
	char *torn = mem_printf("%s/torn", h.folder);
	harness_shell("cp '%s' '%s'", path, torn);
	assert_int_equal(truncate(torn, (off_t)(to - 9)), 0);
	assert_int_equal(truncate(torn, 256 << 10), 0);
	harness_open(&h);
	harness_store(&h, 1, 200);
	harness_recovered(&h, 4);
	harness_close(&h);
	harness_shell("cp '%s' '%s'", torn, path);
	harness_open(&h);
	while (harness_count(&h) < 3)
		usleep(1000);
	assert_int_equal(harness_files(&h, "quarantine"), 0);
	free(path);
	free(torn);
}

/* Pages go to the disk in any order: the end of a batch may be there and its middle not. */
static void a_torn_batch_with_right_records_behind_it_is_no_damage(void **state)
{
	(void)state;
	uint64_t from, to;
	const char zeros[100] = "";
	char *path = killed_after_three(&from, &to);
	overwrite(path, from, zeros, sizeof zeros);
	for (int start = 0; start < 2; start++) {
		harness_open(&h);
		harness_recovered(&h, 2);
		harness_close(&h);
		assert_int_equal(harness_files(&h, "quarantine"), 0);
	}
	free(path);
}

static void damage_in_the_middle_costs_only_the_message_that_it_hits(void **state)
{
	(void)state;
	store_and_stop(5);
	uint64_t end, from, to;
	char *path = first_segment(&end);
	assert_true(find(path, RECORD_CONTENT, 2, &from, &to));
	overwrite(path, from + 100, "????", 4);
	free(path);
	harness_open(&h);
	harness_recovered(&h, 4);
	assert_int_equal(harness_files(&h, "quarantine"), 3); /* the bytes, envelope, content */
	harness_close(&h);
	harness_open(&h);
	harness_recovered(&h, 4);
}

static void a_damaged_record_head_is_got_over(void **state)
{
	(void)state;
	store_and_stop(5);
	uint64_t end, from, to;
	char *path = first_segment(&end);
	assert_true(find(path, RECORD_CONTENT, 3, &from, &to));
	overwrite(path, from + 4, "????", 4);
	free(path);
	harness_open(&h);
	harness_recovered(&h, 4);
	assert_true(harness_files(&h, "quarantine") > 0);
}

/* A queue with records of all types: one message delivered in part, one deferred, one finished, two
 * that wait. */
static void store_all_kinds(void)
{
	harness_credit(&h, 3);
	for (int i = 0; i < 5; i++) {
		harness_store(&h, 2, 300);
		harness_wait(&h, &h.nstored, i + 1);
	}
	struct envelope *a = harness_take(&h), *b = harness_take(&h), *c = harness_take(&h);
	harness_delivered(&h, a->id, 0, VERDICT_SENT);
	b->due_ms = clock_wall_ms() + 3600000;
	b->rounds = 1;
	harness_release(&h, b->id, b);
	harness_release(&h, c->id, NULL);
	envelope_free(&a);
	envelope_free(&c);
	harness_count(&h);
	harness_close(&h);
}

static void a_bit_flipped_in_any_record_costs_at_most_one_message(void **state)
{
	(void)state;
	uint64_t end, from, to;
	store_all_kinds();
	harness_shell("cp -a --sparse=always '%s/log' '%s/saved'", h.conf->spool, h.folder);
	char *path = first_segment(&end);
	int n = 0;
	for (; find(path, 0, n, &from, &to); n++) {
		for (int part = 0; part < 2; part++) {
			char byte;
			uint64_t at = part ? from + RECORD_HEAD : from + 8;
			if (at >= to)
				continue;
			int fd = open(path, O_RDWR);
			assert_int_equal(pread(fd, &byte, 1, (off_t)at), 1);
			close(fd);
			byte ^= 4;
			overwrite(path, at, &byte, 1);
			harness_open(&h);
			int left = harness_count(&h);
			assert_in_range(left, 3, 5); /* without its finish, a message comes back */
			harness_close(&h);
			if (harness_files(&h, "quarantine") == 0)
				fail_msg("record %d, part %d: nothing was put aside", n, part);
			harness_shell("rm -rf '%s'/quarantine/*", h.conf->spool, "");
			put_back();
		}
	}
	assert_true(n > 10);
	free(path);
}

static void a_segment_cut_short_costs_only_what_is_gone(void **state)
{
	(void)state;
	uint64_t end, from, to;
	store_and_stop(5);
	char *path = first_segment(&end);
	assert_true(find(path, RECORD_ENVELOPE, 3, &from, &to));
	assert_int_equal(truncate(path, (off_t)from + 10), 0);
	harness_open(&h);
	harness_recovered(&h, 3);
	free(path);
}

static void a_foreign_file_is_put_aside(void **state)
{
	(void)state;
	store_and_stop(2);
	harness_shell("echo mine > '%s/log/%s'", h.conf->spool, "notes.txt");
	harness_shell("cp '%s'/log/*1.seg '%s/log/00000000000000ff.seg'", h.conf->spool,
		      h.conf->spool);
	harness_open(&h);
	harness_recovered(&h, 2);
	assert_int_equal(harness_files(&h, "quarantine"), 2);
}

static void a_file_behind_which_no_segment_has_a_number_is_a_foreign_one(void **state)
{
	(void)state;
	store_and_stop(2);
	harness_shell("cp '%s'/log/*1.seg '%s/log/ffffffffffffffff.seg'", h.conf->spool,
		      h.conf->spool);
	harness_shell("rm -f '%s/log/%s'", h.conf->spool, "checkpoint");
	harness_open(&h);
	harness_recovered(&h, 2);
	assert_int_equal(harness_files(&h, "quarantine"), 1);
	/* Numbers that began anew would be those of segments that are there. */
	harness_shell("test ! -e '%s/log/%s'", h.conf->spool, "0000000000000000.seg");
}

static void a_segment_is_read_by_the_copy_of_its_head(void **state)
{
	(void)state;
	store_and_stop(5);
	uint64_t end;
	char *path = first_segment(&end);
	overwrite(path, 0, "????????????????", 16);
	free(path);
	harness_open(&h);
	harness_recovered(&h, 5);
}

/* The first of its type, in whatever segment. */
static void damage_record(enum record_type type)
{
	bool found = false;
	for (uint64_t seq = 1; seq < 1000 && !found; seq++) {
		char name[SEGMENT_NAME];
		uint64_t from, to;
		char *path = mem_printf("%s/log/%s", h.conf->spool, segment_name(seq, name));
		found = access(path, F_OK) == 0 && find(path, (uint8_t)type, 0, &from, &to);
		if (found)
			overwrite(path, from + RECORD_HEAD, "????", 4);
		free(path);
	}
	assert_true(found);
}

/* What came of it is not known, though what is left of it looks as if nobody had begun. */
static void what_was_begun_by_an_envelope_that_is_lost_was_begun(void **state)
{
	(void)state;
	harness_credit(&h, 1);
	harness_store(&h, 2, 300);
	struct envelope *e = harness_take(&h);
	e->due_ms = clock_wall_ms();
	e->rounds = 1;
	harness_release(&h, e->id, e);
	harness_credit(&h, 1);
	e = harness_take(&h);
	harness_count(&h); /* what came before it is written */
	harness_crash(&h);
	damage_record(RECORD_REPLACEMENT);
	damage_record(RECORD_START);
	harness_open(&h);
	struct spool_command *c = harness_ask(&h, SPOOL_SHOW, e->id, 0, 0);
	assert_int_equal(c->nrow, 1);
	assert_int_equal(c->row[0].envelope->rounds, 0);
	assert_int_equal(c->row[0].queue,
			 SPOOL_DEFERRED); /* due now, as any that was being delivered */
	assert_true(c->row[0].envelope->due_ms > 0);
	spool_command_free(&c);
	envelope_free(&e);
}

static void a_large_message_whose_file_is_missing_is_never_delivered(void **state)
{
	(void)state;
	struct spool_store *s = mem_zalloc(sizeof *s);
	s->note.type = SPOOL_STORE;
	s->reply_to = h.loop;
	s->envelope = harness_envelope(1);
	s->envelope->size = 5;
	s->file = spool_file_new(h.spool, s->envelope->id);
	assert_int_equal(spool_file_write(s->file, "abcde", 5), 0);
	loop_post(spool_loop(h.spool), &s->note);
	harness_store(&h, 1, 100);
	harness_wait(&h, &h.nstored, 2);
	harness_close(&h);
	harness_shell("rm '%s'/large/*", h.conf->spool, "");
	harness_open(&h);
	harness_recovered(&h, 1);
	assert_int_equal(harness_files(&h, "quarantine"), 1);
}

static void mail_is_taken_while_recovery_runs(void **state)
{
	(void)state;
	store_and_stop(2000);
	h.nstored = 0;
	harness_open(&h);
	uint64_t id = harness_store(&h, 1, 100);
	harness_wait(&h, &h.nstored, 1);
	harness_recovered(&h, 2001);
	struct spool_command *c = harness_ask(&h, SPOOL_LIST, 0, id - 1, 10);
	assert_int_equal(c->nrow, 1);
	spool_command_free(&c);
}

/* Messages come and go until the log has moved on by some segments. */
static void fill_and_finish(void)
{
	for (int i = 0; i < 120; i++) {
		harness_store(&h, 1, 5000);
		struct envelope *e = harness_take(&h);
		harness_release(&h, e->id, NULL);
		envelope_free(&e);
	}
}

static void what_a_removed_segment_declared_dead_stays_dead(void **state)
{
	(void)state;
	harness_credit(&h, 100);
	/* Three messages in the first segment; one of them keeps it for ever. */
	harness_store(&h, 1, 1000);
	uint64_t finished = harness_store(&h, 1, 1000);
	uint64_t replaced = harness_store(&h, 1, 1000);
	struct envelope *stuck = harness_take(&h), *e = harness_take(&h);
	envelope_free(&e);
	e = harness_take(&h);
	fill_and_finish();
	/* The finish of one, and the replacement of another, lie in a segment in the middle. */
	harness_release(&h, finished, NULL);
	e->due_ms = clock_wall_ms();
	e->rounds = 1;
	harness_release(&h, replaced, e);
	e = harness_take(&h);
	assert_int_equal(e->id, replaced);
	fill_and_finish();
	harness_release(&h, replaced, NULL);
	envelope_free(&e);
	fill_and_finish();
	/* The first, unless what keeps it has been moved out of it; the last, the next, that of a lane. */
	assert_in_range(harness_fewest_segments(&h, 4), 1, 4);
	assert_int_equal(harness_count(&h), 1); /* the last finish is written as well */
	harness_crash(&h);
	harness_open(&h);
	struct spool_command *c = harness_ask(&h, SPOOL_LIST, 0, 0, 100);
	assert_int_equal(c->nrow, 1);
	assert_int_equal(c->row[0].envelope->id, stuck->id);
	spool_command_free(&c);
	envelope_free(&stuck);
}

/* While the clock had been set back they followed each other, and mail is taken before the segments are read. */
static void ids_are_above_those_of_a_time_when_the_clock_was_behind(void **state)
{
	(void)state;
	ident_floor((uint64_t)(clock_wall_us() + INT64_C(3600000000)) << IDENT_TIME_SHIFT);
	harness_close(&h);
	harness_open(&h);
	uint64_t stored = harness_store(&h, 1, 100);
	harness_wait(&h, &h.nstored, 1);
	harness_close(&h);
	harness_open(&h);
	assert_true(ident_new() > stored + 1000 * IDENT_NODES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HARNESS_TEST(a_tail_torn_at_any_byte_costs_only_the_last_message),
		HARNESS_TEST(a_tail_torn_before_an_earlier_start_is_no_damage),
		HARNESS_TEST(a_torn_batch_with_right_records_behind_it_is_no_damage),
		HARNESS_TEST(a_bit_flipped_in_any_record_costs_at_most_one_message),
		HARNESS_TEST(a_segment_cut_short_costs_only_what_is_gone),
		HARNESS_TEST(a_foreign_file_is_put_aside),
		HARNESS_TEST(a_file_behind_which_no_segment_has_a_number_is_a_foreign_one),
		HARNESS_TEST(damage_in_the_middle_costs_only_the_message_that_it_hits),
		HARNESS_TEST(a_damaged_record_head_is_got_over),
		HARNESS_TEST(a_segment_is_read_by_the_copy_of_its_head),
		HARNESS_TEST(a_large_message_whose_file_is_missing_is_never_delivered),
		HARNESS_TEST(what_was_begun_by_an_envelope_that_is_lost_was_begun),
		HARNESS_TEST(mail_is_taken_while_recovery_runs),
		HARNESS_TEST(what_a_removed_segment_declared_dead_stays_dead),
		HARNESS_TEST(ids_are_above_those_of_a_time_when_the_clock_was_behind),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
