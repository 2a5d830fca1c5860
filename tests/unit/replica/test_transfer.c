/* SPDX-License-Identifier: ISC */
/* The queue of another node comes into ours once more, and the disk fails in between: it has a read of its own. */
#define disk_read real_disk_read
#include "spool/disk.c"
#undef disk_read

#include "tests/unit/spool/harness.h"

#include "replica/transfer.h"
#include "spool/scan.h"
#include "spool/segment.h"

#include <stdatomic.h>

#define FIRST "0000000000000001.seg"

enum { MOVED = 5000, KEPT = 20000, KEEPERS = 6, BETWEEN = 12 };

static atomic_int failing; /* so many of the next reads of our log */

ssize_t disk_read(int fd, void *to, size_t len, uint64_t offset);

static bool is_of_our_log(int fd)
{
	char link[64], path[512];
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, path, sizeof path - 1);
	path[n > 0 ? n : 0] = '\0';
	return strstr(path, "/queue/log/");
}

ssize_t disk_read(int fd, void *to, size_t len, uint64_t offset)
{
	if (atomic_load(&failing) <= 0 || !is_of_our_log(fd))
		return real_disk_read(fd, to, len, offset);
	atomic_fetch_sub(&failing, 1);
	errno = EIO;
	return -1;
}

static atomic_bool interrupt;
static struct transferred came;

static int setup(void **state)
{
	atomic_store(&failing, 0);
	return harness_setup(state);
}

/* The node that had this queue is no more. */
static char *leave_folder(void)
{
	harness_close(&h);
	char *folder = mem_printf("%s/other", h.folder);
	harness_shell("mv '%s' '%s'", h.conf->spool, folder);
	harness_open(&h);
	return folder;
}

/* A queue with one large message, of which nothing is left but this folder. */
static uint64_t make_other(char **folder)
{
	enum { SIZE = SPOOL_CONTENT_INLINE_MAX + 1000 };
	struct spool_store *s = harness_new_store(&h, 1, SIZE);
	uint64_t id = s->id;
	char *bytes = mem_alloc(SIZE);
	memset(bytes, 'a' + SIZE % 26, SIZE);
	content_unref(s->content);
	s->content = NULL;
	s->file = spool_file_new(h.spool, id);
	assert_int_equal(spool_file_write(s->file, bytes, SIZE), 0);
	free(bytes);
	spool_post(h.spool, &s->note);
	harness_wait(&h, &h.nstored, 1);
	*folder = leave_folder();
	return id;
}

static void take(struct transfer *t, const char *folder)
{
	struct buf error = {0};
	transfer_begin(t);
	if (!transfer_run(t, folder, &(struct transfer_of){.node = "n9"}, &came, &error))
		fail_msg("%s", buf_cstr(&error));
	buf_fini(&error);
}

static void release_all(void)
{
	struct note *n = mem_zalloc(sizeof *n);
	n->type = SPOOL_ADOPTED;
	loop_post(spool_loop(h.spool), n);
}

/* Its taker was killed, or had no room for the rest. */
static void taken_twice(int unread)
{
	char *folder;
	uint64_t id = make_other(&folder);
	struct transfer *t = transfer_new(h.conf, h.spool, &interrupt);
	take(t, folder);
	assert_int_equal(came.messages, 1);
	atomic_store(&failing, unread);
	take(t, folder);
	assert_int_equal(came.messages, 1);
	assert_int_equal(atomic_load(&failing) > 0, unread > 1);
	atomic_store(&failing, 0);
	assert_int_equal(harness_files(&h, "large"), 1);
	harness_crash(&h);
	transfer_free(&t);
	harness_open(&h);
	harness_recovered(&h, 1);
	release_all();
	harness_credit(&h, 10);
	struct envelope *e = harness_take(&h);
	assert_int_equal(e->id, id);
	envelope_free(&e);
	free(folder);
}

static void what_was_taken_once_stays_as_it_is(void **state)
{
	(void)state;
	taken_twice(0);
}

static void so_it_does_where_its_envelope_can_not_be_read_for_once(void **state)
{
	(void)state;
	taken_twice(1);
}

/* As it is there, it need not come again; and what follows it does. */
static void and_where_it_can_not_be_read_at_all(void **state)
{
	(void)state;
	taken_twice(1000000);
}

static uint64_t store_for_later(size_t size)
{
	uint64_t id = harness_store(&h, 1, size);
	struct envelope *e = harness_take(&h);
	e->due_ms = clock_wall_ms() + 3600000;
	e->rounds = 1;
	harness_release(&h, id, e);
	return id;
}

static void store_and_send(void)
{
	uint64_t id = harness_store(&h, 1, KEPT);
	struct envelope *e = harness_take(&h);
	harness_release(&h, id, NULL);
	envelope_free(&e);
}

static void wait_until_gone(const char *segment)
{
	int64_t end_ms = clock_steady_ms() + WAIT_MS;
	char *path = mem_printf("%s/log/%s", h.conf->spool, segment);
	while (access(path, F_OK) == 0 && clock_steady_ms() < end_ms)
		usleep(1000);
	assert_int_not_equal(access(path, F_OK), 0);
	free(path);
}

/* The first segment holds little beside what is moved, the others more. */
static uint64_t store_and_move(void)
{
	harness_credit(&h, 1000);
	uint64_t id = store_for_later(MOVED);
	harness_recovered(&h, 1);
	harness_shell("cp '%s/log/" FIRST "' '%s'", h.conf->spool, h.folder);
	for (int i = 0; i < KEEPERS; i++) {
		for (int k = 0; k < BETWEEN; k++)
			store_and_send();
		store_for_later(KEPT);
	}
	wait_until_gone(FIRST);
	harness_recovered(&h, 1 + KEEPERS);
	return id;
}

static bool lose_in(const struct segment *g, uint64_t id)
{
	static const char nothing[MOVED];
	struct scan scan;
	bool found = false;
	scan_init(&scan, g->file->fd, g->seed, g->size);
	while (!found && scan_next(&scan) == SCAN_RECORD)
		found = scan.record.type == RECORD_CONTENT && scan.record.id == id;
	off_t at = (off_t)(scan.from + RECORD_HEAD);
	scan_fini(&scan);
	return found && pwrite(g->file->fd, nothing, MOVED, at) == MOVED;
}

/* Where it was moved to. */
static void lose_content(const char *folder, uint64_t id)
{
	char *path = mem_printf("%s/log", folder);
	int fd = open(path, O_RDONLY | O_DIRECTORY);
	int64_t changed_ms;
	bool lost = false;
	for (uint64_t seq = 2; !lost && seq < 100; seq++) {
		struct segment *g = segment_open(fd, seq, O_RDWR, &changed_ms);
		lost = g && lose_in(g, id);
		segment_free(&g);
	}
	assert_true(lost);
	close(fd);
	free(path);
}

/* The copy has the envelope that names the new place, and the old place: the rest was still to come when its node was lost. */
static void what_was_moved_is_taken_from_where_it_was(void **state)
{
	(void)state;
	uint64_t id = store_and_move();
	char *folder = leave_folder();
	char *before = mem_printf("%s/" FIRST, h.folder);
	harness_shell("mv '%s' '%s/log'", before, folder);
	lose_content(folder, id);
	struct transfer *t = transfer_new(h.conf, h.spool, &interrupt);
	take(t, folder);
	assert_int_equal(came.damaged, 0);
	assert_int_equal(came.messages, 1 + KEEPERS);
	harness_recovered(&h, 1 + KEEPERS);
	harness_close(&h);
	transfer_free(&t);
	harness_open(&h);
	free(before);
	free(folder);
}

static int64_t arrival_of(uint64_t id)
{
	struct spool_command *c = harness_ask(&h, SPOOL_SHOW, id, 0, 1);
	assert_int_equal(c->nrow, 1);
	int64_t ms = c->row[0].envelope->arrived_ms;
	spool_command_free(&c);
	return ms;
}

static void what_a_wrong_clock_has_written_is_put_right(void **state)
{
	enum { AHEAD_MS = 7200000 };
	struct buf error = {0};
	(void)state;
	uint64_t id = harness_store(&h, 1, 100);
	int64_t before_ms = arrival_of(id);
	char *folder = leave_folder();
	struct transfer *t = transfer_new(h.conf, h.spool, &interrupt);
	transfer_begin(t);
	assert_true(transfer_run(t, folder,
				 &(struct transfer_of){.node = "n9", .ahead_ms = AHEAD_MS}, &came,
				 &error));
	assert_int_equal(came.messages, 1);
	assert_int_equal(arrival_of(id), before_ms - AHEAD_MS);
	harness_close(&h);
	transfer_free(&t);
	harness_open(&h);
	buf_fini(&error);
	free(folder);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, harness_teardown)
	const struct CMUnitTest tests[] = {
		TEST(what_was_taken_once_stays_as_it_is),
		TEST(so_it_does_where_its_envelope_can_not_be_read_for_once),
		TEST(and_where_it_can_not_be_read_at_all),
		TEST(what_was_moved_is_taken_from_where_it_was),
		TEST(what_a_wrong_clock_has_written_is_put_right),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
