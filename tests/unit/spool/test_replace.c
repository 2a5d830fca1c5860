/* SPDX-License-Identifier: ISC */
/* A message on hold gives way to another, once that one is stored, and to nothing else. */
#include "harness.h"

#include <sys/stat.h>

static void post(struct spool_store *store)
{
	loop_post(spool_loop(h.spool), &store->note);
}

static uint64_t store_held(size_t size)
{
	struct spool_store *store = harness_new_store(&h, 2, size);
	uint64_t id = store->id;
	store->envelope->held = true;
	int n = h.nstored;
	post(store);
	harness_wait(&h, &h.nstored, n + 1);
	return id;
}

static uint32_t generation_of(uint64_t id)
{
	struct spool_command *c = harness_ask(&h, SPOOL_SHOW, id, 0, 0);
	assert_int_equal(c->nrow, 1);
	uint32_t generation = c->row[0].generation;
	spool_command_free(&c);
	return generation;
}

static struct spool_store *replacement(uint64_t of, uint32_t generation)
{
	struct spool_store *store = harness_new_store(&h, 1, 100);
	store->replaces = of;
	store->generation = generation;
	return store;
}

static bool is_there(uint64_t id)
{
	struct spool_command *c = harness_ask(&h, SPOOL_SHOW, id, 0, 0);
	bool there = c->nrow > 0;
	spool_command_free(&c);
	return there;
}

static int64_t ordered(int op, uint64_t id)
{
	struct spool_command *c = harness_ask(&h, op, id, 0, 0);
	int64_t n = c->affected;
	spool_command_free(&c);
	return n;
}

static void the_held_one_goes_when_the_other_is_stored(void **state)
{
	(void)state;
	harness_credit(&h, 5);
	uint64_t held = store_held(100);
	struct spool_store *store = replacement(held, generation_of(held));
	uint64_t id = store->id;
	post(store);
	harness_wait(&h, &h.nstored, 2);
	struct envelope *e = harness_take(&h);
	assert_int_equal(e->id, id);
	envelope_free(&e);
	assert_false(is_there(held));
	assert_true(is_there(id));
	harness_close(&h);
	harness_open(&h);
	assert_false(is_there(held));
	assert_true(is_there(id));
}

static void the_file_of_a_large_one_goes_too(void **state)
{
	(void)state;
	struct spool_store *store = harness_new_store(&h, 1, 10);
	uint64_t held = store->id;
	store->envelope->held = true;
	content_unref(store->content);
	store->content = NULL;
	store->file = spool_file_new(h.spool, held);
	assert_int_equal(spool_file_write(store->file, "0123456789", 10), 0);
	post(store);
	harness_wait(&h, &h.nstored, 1);
	assert_int_equal(harness_files(&h, "large"), 1);
	post(replacement(held, generation_of(held)));
	harness_wait(&h, &h.nstored, 2);
	harness_close(&h);
	assert_int_equal(harness_files(&h, "large"), 0);
	harness_open(&h);
}

static void what_is_not_on_hold_as_it_was_is_not_replaced(void **state)
{
	(void)state;
	harness_credit(&h, 5);
	uint64_t held = store_held(100);
	uint32_t generation = generation_of(held);
	post(replacement(held, generation + 1));
	harness_wait(&h, &h.nrefused, 1);
	post(replacement(held + 1, generation));
	harness_wait(&h, &h.nrefused, 2);
	assert_int_equal(ordered(SPOOL_RESUME, held), 1);
	struct envelope *e = harness_take(&h);
	post(replacement(held, generation_of(held)));
	harness_wait(&h, &h.nrefused, 3);
	/* Held once more, after one of its recipients has been served. */
	e->rcpt[0].done = e->held = true;
	harness_release(&h, held, e);
	post(replacement(held, generation));
	harness_wait(&h, &h.nrefused, 4);
	assert_true(is_there(held));
	post(replacement(held, generation_of(held)));
	harness_wait(&h, &h.nstored, 2);
	assert_false(is_there(held));
}

static void of_two_that_want_its_place_one_gets_it(void **state)
{
	(void)state;
	uint64_t held = store_held(100);
	uint32_t generation = generation_of(held);
	post(replacement(held, generation));
	post(replacement(held, generation));
	harness_wait(&h, &h.nrefused, 1);
	harness_wait(&h, &h.nstored, 2);
	assert_int_equal(harness_count(&h), 1);
}

static void one_that_cannot_be_stored_leaves_the_held_one_as_it_was(void **state)
{
	(void)state;
	uint64_t held = store_held(100);
	harness_close(&h);
	h.conf->queue_minfree = INT64_MAX / 2; /* there is no such disk */
	harness_open(&h);
	post(replacement(held, generation_of(held)));
	harness_wait(&h, &h.nrefused, 1);
	assert_true(is_there(held));
	assert_int_equal(ordered(SPOOL_RESUME, held), 1);
}

static void only_what_is_held_is_deleted_where_that_is_asked_for(void **state)
{
	(void)state;
	harness_credit(&h, 5);
	uint64_t id = harness_store(&h, 1, 100);
	harness_wait(&h, &h.nstored, 1);
	struct spool_command *c = spool_command_new(SPOOL_DELETE, h.loop, NULL);
	c->id = id;
	c->held_only = true;
	int n = h.ncommand;
	loop_post(spool_loop(h.spool), &c->note);
	harness_wait(&h, &h.ncommand, n + 1);
	assert_int_equal(h.command->unmoved[SPOOL_NOT_HELD], 1);
	spool_command_free(&h.command);
	assert_true(is_there(id));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HARNESS_TEST(the_held_one_goes_when_the_other_is_stored),
		HARNESS_TEST(the_file_of_a_large_one_goes_too),
		HARNESS_TEST(what_is_not_on_hold_as_it_was_is_not_replaced),
		HARNESS_TEST(of_two_that_want_its_place_one_gets_it),
		HARNESS_TEST(one_that_cannot_be_stored_leaves_the_held_one_as_it_was),
		HARNESS_TEST(only_what_is_held_is_deleted_where_that_is_asked_for),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
