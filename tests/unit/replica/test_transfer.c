/* SPDX-License-Identifier: ISC */
/* The queue of another node comes into ours once more, and the disk fails in between: it has a read of its own. */
#define disk_read real_disk_read
#include "spool/disk.c"
#undef disk_read

#include "tests/unit/spool/harness.h"

#include "replica/transfer.h"

#include <stdatomic.h>

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
	harness_close(&h);
	*folder = mem_printf("%s/other", h.folder);
	harness_shell("mv '%s' '%s'", h.conf->spool, *folder);
	harness_open(&h);
	return id;
}

static void take(struct transfer *t, const char *folder)
{
	struct buf error = {0};
	transfer_begin(t);
	if (!transfer_run(t, folder, "n9", NULL, &came, &error))
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

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, harness_teardown)
	const struct CMUnitTest tests[] = {
		TEST(what_was_taken_once_stays_as_it_is),
		TEST(so_it_does_where_its_envelope_can_not_be_read_for_once),
		TEST(and_where_it_can_not_be_read_at_all),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
