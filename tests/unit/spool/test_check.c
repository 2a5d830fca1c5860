/* SPDX-License-Identifier: ISC */
/* The queue read offline. This test links a disk of its own, the real one with a fault: quarantine/
 * can be full. */
#define disk_open real_disk_open
#define disk_move real_disk_move
#include "spool/disk.c"
#undef disk_open
#undef disk_move

#include "harness.h"

#include "spool/repair.h"
#include "spool/scan.h"
#include "spool/segment.h"
#include "spool/spool_look.h"

static bool quarantine_full;

int disk_open(int folder, const char *name, int flags);

int disk_open(int folder, const char *name, int flags)
{
	bool kept = strstr(name, ".seg.") || strstr(name, ".envelope") || strstr(name, ".content");
	if (quarantine_full && (flags & O_CREAT) && kept) {
		errno = ENOSPC;
		return -1;
	}
	return real_disk_open(folder, name, flags);
}

int disk_move(int from, const char *name, int to, const char *to_name)
{
	if (quarantine_full) {
		errno = ENOSPC;
		return -1;
	}
	return real_disk_move(from, name, to, to_name);
}

/* What the last check has said. */
static struct said {
	int n[CHECK_ORPHAN + 1], left;
	uint64_t id, seq, offset; /* of the last */
} said;

static int setup(void **state)
{
	quarantine_full = false;
	return harness_setup(state);
}

static void found(void *owner, const struct check_finding *f)
{
	(void)owner;
	said.n[f->fault]++;
	said.left += f->left;
	said.id = f->id;
	said.seq = f->seq;
	said.offset = f->offset;
}

static struct check_summary run(bool repair)
{
	struct check check = {.found = found};
	struct buf error;
	buf_init(&error);
	said = (struct said){.left = 0};
	bool ok =
		repair ? spool_repair(h.conf, &check, &error) : spool_check(h.conf, &check, &error);
	if (!ok)
		fail_msg("%s", buf_cstr(&error));
	buf_fini(&error);
	return check.summary;
}

static void store(int n, size_t size)
{
	for (int i = 0; i < n; i++) {
		harness_store(&h, 2, size);
		harness_wait(&h, &h.nstored, h.nstored + 1);
	}
}

/* A queue with messages in all states, and one that is done, as a kill leaves it. The oldest. */
static uint64_t store_all_states(void)
{
	harness_credit(&h, 4);
	store(8, 300);
	struct envelope *e[4];
	for (int i = 0; i < 4; i++)
		e[i] = harness_take(&h);
	uint64_t oldest = e[1]->id;
	harness_release(&h, e[0]->id, NULL);
	envelope_free(&e[0]);
	harness_delivered(&h, e[1]->id, 0, VERDICT_SENT);
	e[2]->due_ms = clock_wall_ms() + 3600000;
	e[2]->rounds = 1;
	harness_release(&h, e[2]->id, e[2]);
	e[3]->held = true;
	harness_release(&h, e[3]->id, e[3]);
	envelope_free(&e[1]);
	harness_count(&h);
	harness_crash(&h);
	return oldest;
}

static void messages_are_counted_by_their_queue(void **state)
{
	(void)state;
	uint64_t oldest = store_all_states();
	struct check_summary s = run(false);
	assert_int_equal(s.faults, 0);
	assert_int_equal(s.format, 2);
	/* Credit came back with the three that were released, and others went out for it. */
	assert_int_equal(s.messages[SPOOL_INCOMING], 1);
	assert_int_equal(s.messages[SPOOL_ACTIVE], 4);
	assert_int_equal(s.messages[SPOOL_DEFERRED], 1);
	assert_int_equal(s.messages[SPOOL_HOLD], 1);
	assert_int_equal(s.recipients, 2 * 7 - 1);
	assert_true(s.oldest == oldest);
	assert_in_range(s.needed, 7 * 300, 7 * 1000);
	assert_true(s.bytes >= s.segments * SEGMENT_BEGIN);
}

static void a_queue_in_use_is_left_alone(void **state)
{
	(void)state;
	struct check check = {.found = found};
	struct buf error;
	buf_init(&error);
	assert_false(spool_check(h.conf, &check, &error));
	assert_non_null(strstr(buf_cstr(&error), "a relay has this queue"));
	buf_clear(&error);
	assert_false(spool_repair(h.conf, &check, &error));
	assert_non_null(strstr(buf_cstr(&error), "a relay has this queue"));
	buf_fini(&error);
}

static void a_folder_without_a_queue_is_empty(void **state)
{
	(void)state;
	harness_close(&h);
	harness_shell("rm -rf '%s' && mkdir '%s'", h.conf->spool, h.conf->spool);
	struct check_summary s = run(true);
	assert_int_equal(s.faults + s.segments + s.bytes, 0);
	harness_shell("test -z \"$(ls -A '%s')\"", h.conf->spool, "");
}

/* Change a byte of the first content in the log. */
static void damage_a_content(void)
{
	for (uint64_t seq = 1;; seq++) {
		char name[SEGMENT_NAME];
		assert_true(seq < 1000);
		char *path = mem_printf("%s/log/%s", h.conf->spool, segment_name(seq, name));
		int fd = open(path, O_RDWR);
		uint8_t bytes[SEGMENT_HEAD];
		struct segment_head head;
		struct scan scan = {.window = NULL};
		bool done = false;
		free(path);
		if (fd >= 0 && pread(fd, bytes, sizeof bytes, 0) == SEGMENT_HEAD &&
		    segment_head_get(bytes, &head)) {
			scan_init(&scan, fd, segment_head_seed(&head),
				  (uint64_t)lseek(fd, 0, SEEK_END));
			while (!done && scan_next(&scan) == SCAN_RECORD)
				done = scan.record.type == RECORD_CONTENT;
		}
		if (done)
			assert_int_equal(pwrite(fd, "?", 1, (off_t)scan.from + RECORD_HEAD + 9), 1);
		scan_fini(&scan);
		if (fd >= 0)
			close(fd);
		if (done)
			return;
	}
}

static void damage_is_put_aside_by_a_repair_and_only_its_message_is_lost(void **state)
{
	(void)state;
	store(5, 300);
	harness_close(&h);
	damage_a_content();
	struct check_summary s = run(false);
	assert_int_equal(s.faults, 2);
	assert_int_equal(said.n[CHECK_DAMAGED], 1);
	assert_int_equal(said.n[CHECK_MESSAGE], 1);
	assert_int_equal(harness_files(&h, "quarantine"), 0);
	s = run(true);
	assert_int_equal(s.faults, 0);
	assert_int_equal(s.repaired, 2);
	assert_int_equal(s.messages[SPOOL_INCOMING] + s.messages[SPOOL_DEFERRED], 4);
	assert_int_equal(harness_files(&h, "quarantine"), 3);
	harness_shell("test ! -e '%s/log/%s'", h.conf->spool, "0000000000000001.seg");
	harness_open(&h);
	harness_recovered(&h, 4);
	harness_credit(&h, 4);
	for (int i = 0; i < 4; i++) {
		struct envelope *e = harness_take(&h);
		envelope_free(&e);
	}
}

static struct spool_command *look_at(struct spool_look *l, uint64_t id, bool checked)
{
	struct spool_command *c = spool_command_new(SPOOL_SHOW, h.loop, &h);
	int before = h.ncommand;
	c->id = id;
	c->checked = checked;
	loop_post(spool_look_loop(l), &c->note);
	harness_wait(&h, &h.ncommand, before + 1);
	return h.command;
}

/* Whoever takes the messages of another node has only this to tell that it is damaged. */
static void damaged_content_is_not_handed_to_whoever_wants_it_checked(void **state)
{
	struct buf error = {0};
	uint64_t id[10];
	(void)state;
	store(5, 300);
	harness_close(&h);
	damage_a_content();
	struct spool_look *l = spool_look_new(h.conf, h.conf->spool, &error);
	assert_non_null(l);
	int damaged = 0;
	size_t n = spool_look_ids(l, 0, id, 10);
	assert_int_equal(n, 5);
	for (size_t i = 0; i < n; i++) {
		struct spool_command *c = look_at(l, id[i], true);
		assert_int_equal(c->nrow, 1);
		assert_true(c->row[0].content || c->row[0].error == EBADMSG);
		damaged += !c->row[0].content;
		spool_command_free(&c);
		c = look_at(l, id[i], false); /* the operator sees what there is */
		assert_non_null(c->row[0].content);
		spool_command_free(&c);
	}
	assert_int_equal(damaged, 1);
	spool_look_free(&l);
	harness_open(&h);
}

static void what_can_not_be_put_aside_stays_where_it_is(void **state)
{
	(void)state;
	store(5, 300);
	harness_close(&h);
	damage_a_content();
	quarantine_full = true;
	struct check_summary s = run(true);
	assert_true(s.faults > 0);
	assert_int_equal(said.left, s.faults);
	quarantine_full = false;
	s = run(true);
	assert_int_equal(s.faults, 0);
	assert_int_equal(s.messages[SPOOL_INCOMING] + s.messages[SPOOL_DEFERRED], 4);
}

static void a_whole_queue_is_not_touched_by_a_repair(void **state)
{
	(void)state;
	store_all_states();
	harness_shell("(cd '%s' && find . -type f -exec sha256sum {} + | sort) > '%s/before'",
		      h.conf->spool, h.folder);
	struct check_summary s = run(true);
	assert_int_equal(s.faults + s.repaired, 0);
	harness_shell("(cd '%s' && find . -type f -exec sha256sum {} + | sort) > '%s/after'",
		      h.conf->spool, h.folder);
	harness_shell("cmp '%s/before' '%s/after'", h.folder, h.folder);
}

/* A kill while a batch is written may leave its envelope and not its content. */
static void what_nobody_was_told_of_is_no_damaged_message(void **state)
{
	(void)state;
	store(1, 300);
	harness_crash(&h);
	damage_a_content();
	struct check_summary s = run(false);
	assert_int_equal(said.n[CHECK_TORN], 1);
	assert_int_equal(s.faults, 1);
	assert_int_equal(s.messages[SPOOL_INCOMING], 0);
}

/* Whatever was wrong with it, it may be all that is left of the mail. */
static void stays_until_there_is_room(int files)
{
	quarantine_full = true;
	harness_open(&h);
	harness_recovered(&h, 3);
	harness_credit(&h, 10);
	for (int i = 0; i < 2; i++) {
		struct envelope *e = harness_take(&h);
		envelope_free(&e);
	}
	assert_int_equal(harness_count(&h), 3);
	harness_close(&h);
	assert_int_equal(harness_files(&h, "quarantine"), 0);
	quarantine_full = false;
	harness_open(&h);
	harness_recovered(&h, 2);
	assert_int_equal(harness_files(&h, "quarantine"), files);
}

static void a_message_that_can_not_be_put_aside_stays_in_the_queue(void **state)
{
	(void)state;
	store(3, 300);
	harness_close(&h);
	damage_a_content();
	stays_until_there_is_room(3); /* the bytes, envelope, content */
}

static void large_content_that_can_not_be_put_aside_stays(void **state)
{
	(void)state;
	struct spool_store *s = harness_new_store(&h, 1, 5);
	content_unref(s->content);
	s->content = NULL;
	s->file = spool_file_new(h.spool, s->envelope->id);
	assert_int_equal(spool_file_write(s->file, "fffff", 5), 0);
	loop_post(spool_loop(h.spool), &s->note);
	harness_wait(&h, &h.nstored, 1);
	store(2, 300);
	harness_close(&h);
	harness_shell("for f in '%s'/large/*; do echo more >> $f; done", h.conf->spool, "");
	stays_until_there_is_room(2); /* envelope, content */
	assert_int_equal(harness_files(&h, "large"), 0);
}

static void files_put_aside_under_one_name_are_all_kept(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		harness_close(&h);
		harness_shell("echo mine > '%s/log/notes'", h.conf->spool, "");
		harness_shell("echo mine too > '%s/large/notes'", h.conf->spool, "");
		harness_open(&h);
		harness_count(&h);
	}
	assert_int_equal(harness_files(&h, "quarantine"), 6);
	assert_int_equal(harness_files(&h, "large"), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, harness_teardown)
	const struct CMUnitTest tests[] = {
		TEST(messages_are_counted_by_their_queue),
		TEST(a_queue_in_use_is_left_alone),
		TEST(a_folder_without_a_queue_is_empty),
		TEST(damage_is_put_aside_by_a_repair_and_only_its_message_is_lost),
		TEST(damaged_content_is_not_handed_to_whoever_wants_it_checked),
		TEST(what_can_not_be_put_aside_stays_where_it_is),
		TEST(a_whole_queue_is_not_touched_by_a_repair),
		TEST(what_nobody_was_told_of_is_no_damaged_message),
		TEST(a_message_that_can_not_be_put_aside_stays_in_the_queue),
		TEST(large_content_that_can_not_be_put_aside_stays),
		TEST(files_put_aside_under_one_name_are_all_kept),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
