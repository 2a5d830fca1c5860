/* SPDX-License-Identifier: ISC */
#include "harness.h"

#include <fcntl.h>

static char *path_of(uint64_t id)
{
	char name[IDENT_TEXT];
	return mem_printf("%s/taken/%s", h.conf->spool, ident_text(id, name));
}

static void lay(uint64_t id)
{
	char *path = path_of(id);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_true(fd >= 0);
	close(fd);
	free(path);
}

static bool lies(uint64_t id)
{
	char *path = path_of(id);
	bool there = access(path, F_OK) == 0;
	free(path);
	return there;
}

static uint64_t store_taken(uint64_t id)
{
	struct spool_store *s = harness_new_store(&h, 1, 100);
	if (id)
		s->envelope->id = s->id = id;
	id = s->id;
	s->taken = true;
	loop_post(spool_loop(h.spool), &s->note);
	return id;
}

static void what_was_taken_is_worked_on_when_its_file_is_gone(void **state)
{
	(void)state;
	harness_credit(&h, 10);
	for (int i = 1; i <= 5; i++) {
		uint64_t id = ident_new();
		lay(id);
		store_taken(id);
		harness_wait(&h, &h.narrival, i);
		assert_false(lies(id));
		assert_int_equal(h.arrival[i - 1]->envelope->id, id);
	}
	assert_int_equal(h.nstored, 5);
}

static void a_start_removes_the_files_of_what_it_has_and_leaves_the_others(void **state)
{
	(void)state;
	uint64_t id = store_taken(0), other = ident_new();
	harness_wait(&h, &h.nstored, 1);
	lay(id);
	lay(other);
	harness_crash(&h);
	harness_open(&h);
	harness_credit(&h, 10);
	harness_wait(&h, &h.narrival, 1);
	assert_int_equal(h.arrival[0]->envelope->id, id);
	assert_false(lies(id));
	assert_true(lies(other));
	assert_true(ident_new() > other);
}

static void what_the_queue_has_is_not_stored_again(void **state)
{
	(void)state;
	uint64_t id = store_taken(0);
	harness_wait(&h, &h.nstored, 1);
	store_taken(id);
	harness_wait(&h, &h.nrefused, 1);
	harness_credit(&h, 10);
	harness_wait(&h, &h.narrival, 1);
	harness_store(&h, 1, 10);
	harness_wait(&h, &h.narrival, 2);
	assert_int_equal(h.arrival[0]->envelope->id, id);
	assert_int_not_equal(h.arrival[1]->envelope->id, id);
}

static void an_id_in_taken_is_not_given_out_again(void **state)
{
	(void)state;
	uint64_t ahead = ident_new() + ((uint64_t)3600000000 << 12);
	lay(ahead);
	harness_crash(&h);
	harness_open(&h);
	assert_true(ident_new() > ahead);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HARNESS_TEST(what_was_taken_is_worked_on_when_its_file_is_gone),
		HARNESS_TEST(a_start_removes_the_files_of_what_it_has_and_leaves_the_others),
		HARNESS_TEST(what_the_queue_has_is_not_stored_again),
		HARNESS_TEST(an_id_in_taken_is_not_given_out_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
