/* SPDX-License-Identifier: ISC */
#include "harness.h"

#include "base/fence.h"
#include "spool/adoption.h"

#include <fcntl.h>

static void note(const uint64_t *id, size_t n)
{
	int folder = open(h.conf->spool, O_RDONLY | O_DIRECTORY);
	assert_true(folder >= 0);
	assert_true(adoption_note(folder, id, n));
	close(folder);
}

static uint64_t adopt_store(struct spool_store *s)
{
	int before = h.nstored;
	uint64_t id = s->envelope->id;
	s->adopted = true;
	note(&id, 1);
	loop_post(spool_loop(h.spool), &s->note);
	harness_wait(&h, &h.nstored, before + 1);
	return id;
}

/* This node's own: stored, and answered for. */
static uint64_t store_own(void)
{
	int before = h.nstored;
	uint64_t id = harness_store(&h, 1, 100);
	harness_wait(&h, &h.nstored, before + 1);
	return id;
}

/* One of another node, as its envelope was there. */
static uint64_t adopt(uint32_t rounds, int64_t due_ms, bool held)
{
	struct spool_store *s = harness_new_store(&h, 1, 100);
	s->envelope->rounds = rounds;
	s->envelope->due_ms = due_ms;
	s->envelope->held = held;
	return adopt_store(s);
}

/* The same message, come from there once more. */
static void adopt_again(uint64_t id)
{
	struct spool_store *s = harness_new_store(&h, 1, 100);
	s->envelope->id = s->id = id;
	adopt_store(s);
}

static void release_all(void)
{
	struct note *n = mem_zalloc(sizeof *n);
	n->type = SPOOL_ADOPTED;
	loop_post(spool_loop(h.spool), n);
}

/* It does not, before it knows what there is: then it is asked again, as by a node. */
static void disown_all(void)
{
	do {
		struct spool_disown *d = mem_zalloc(sizeof *d);
		d->note.type = SPOOL_DISOWN;
		d->reply_to = h.loop;
		int before = h.ndisowned;
		loop_post(spool_loop(h.spool), &d->note);
		harness_wait(&h, &h.ndisowned, before + 1);
	} while (!h.disowned);
}

static enum spool_queue queue_of(uint64_t id)
{
	struct spool_command *c = harness_ask(&h, SPOOL_SHOW, id, 0, 0);
	assert_int_equal(c->nrow, 1);
	enum spool_queue q = c->row[0].queue;
	spool_command_free(&c);
	return q;
}

static bool file_there(void)
{
	char *path = mem_printf("%s/adopting", h.conf->spool);
	bool there = access(path, F_OK) == 0;
	free(path);
	return there;
}

static void what_is_adopted_waits_until_it_is_released(void **state)
{
	(void)state;
	harness_credit(&h, 10);
	uint64_t id = adopt(0, 0, false);
	uint64_t own = store_own();
	harness_wait(&h, &h.narrival, 1);
	assert_int_equal(h.arrival[0]->envelope->id, own);
	assert_int_equal(queue_of(id), SPOOL_HOLD);
	assert_int_equal(h.narrival, 1);
	release_all();
	harness_wait(&h, &h.narrival, 2);
	assert_int_equal(h.arrival[1]->envelope->id, id);
	assert_false(file_there());
}

static void after_a_start_it_still_waits(void **state)
{
	(void)state;
	uint64_t id = adopt(0, 0, false), deferred = adopt(3, clock_wall_ms() + 3600000, false);
	uint64_t held = adopt(1, 0, true);
	harness_crash(&h);
	harness_open(&h);
	harness_credit(&h, 10);
	uint64_t own = store_own();
	harness_wait(&h, &h.narrival, 1);
	assert_int_equal(h.arrival[0]->envelope->id, own);
	harness_recovered(&h, 4);
	assert_int_equal(queue_of(id), SPOOL_HOLD);
	assert_int_equal(queue_of(deferred), SPOOL_HOLD);
	release_all();
	harness_wait(&h, &h.narrival, 2);
	assert_int_equal(h.arrival[1]->envelope->id, id);
	assert_int_equal(queue_of(deferred), SPOOL_DEFERRED);
	assert_int_equal(queue_of(held), SPOOL_HOLD);
	assert_int_equal(h.narrival, 2);
	struct spool_command *c = harness_ask(&h, SPOOL_RESUME, held, 0, 0);
	assert_int_equal(c->affected, 1);
	spool_command_free(&c);
}

static void what_is_disowned_is_gone_also_after_a_crash(void **state)
{
	(void)state;
	adopt(0, 0, false);
	adopt(3, clock_wall_ms() + 3600000, false);
	uint64_t own = store_own();
	disown_all();
	assert_false(file_there());
	harness_crash(&h);
	harness_open(&h);
	harness_credit(&h, 10);
	harness_recovered(&h, 1);
	harness_wait(&h, &h.narrival, 1);
	assert_int_equal(h.arrival[0]->envelope->id, own);
	assert_int_equal(harness_count(&h), 1);
}

static void what_is_on_its_way_is_disowned_too(void **state)
{
	(void)state;
	harness_recovered(&h, 0);
	struct spool_store *s = harness_new_store(&h, 1, 100);
	uint64_t id = s->envelope->id;
	s->adopted = true;
	note(&id, 1);
	loop_post(spool_loop(h.spool), &s->note);
	disown_all();
	harness_crash(&h);
	harness_open(&h);
	harness_recovered(&h, 0);
}

/* All of the queue waits then: it is not known what is this node's. */
static void what_is_disowned_after_an_unread_list_is_what_it_names(void **state)
{
	(void)state;
	adopt(0, 0, false);
	uint64_t own = store_own();
	harness_crash(&h);
	harness_shell("cd '%s' && mv adopting list && mkdir adopting", h.conf->spool, "");
	harness_open(&h);
	harness_credit(&h, 10);
	harness_recovered(&h, 2);
	assert_int_equal(queue_of(own), SPOOL_HOLD);
	harness_shell("cd '%s' && rmdir adopting && mv list adopting", h.conf->spool, "");
	disown_all();
	harness_wait(&h, &h.narrival, 1);
	assert_int_equal(h.arrival[0]->envelope->id, own);
	assert_int_equal(harness_count(&h), 1);
}

/* The first one stays, and keeps the records of what is given back beside it. */
static void what_was_given_back_may_be_adopted_again(void **state)
{
	(void)state;
	uint64_t own = store_own(), id = adopt(0, 0, false);
	adopt(0, 0, false);
	for (int times = 0; times < 3; times++) {
		disown_all();
		adopt_again(id);
	}
	for (int starts = 0; starts < 2; starts++) {
		harness_crash(&h);
		harness_open(&h);
		harness_recovered(&h, 2);
		assert_int_equal(queue_of(id), SPOOL_HOLD);
	}
	disown_all();
	harness_crash(&h);
	harness_open(&h);
	harness_recovered(&h, 1);
	adopt_again(id); /* a start has read of which generation that has to be */
	harness_crash(&h);
	harness_open(&h);
	harness_recovered(&h, 2);
	release_all();
	harness_credit(&h, 10);
	harness_wait(&h, &h.narrival, 2);
	assert_int_equal(h.arrival[0]->envelope->id, own);
	assert_int_equal(h.arrival[1]->envelope->id, id);
}

static void what_is_done_at_last_stays_done(void **state)
{
	(void)state;
	uint64_t id = adopt(0, 0, false);
	disown_all();
	adopt_again(id);
	release_all();
	harness_credit(&h, 10);
	harness_wait(&h, &h.narrival, 1);
	harness_delivered(&h, id, 0, VERDICT_SENT);
	harness_release(&h, id, NULL);
	assert_int_equal(harness_count(&h), 0);
	harness_crash(&h);
	harness_open(&h);
	harness_recovered(&h, 0);
}

static void large_content_that_was_given_back_comes_again(void **state)
{
	(void)state;
	uint64_t id = adopt_store(harness_new_large(&h, ident_new()));
	disown_all();
	assert_int_equal(harness_files(&h, "large"), 0);
	assert_true(adopt_store(harness_new_large(&h, id)) == id);
	harness_crash(&h);
	harness_open(&h);
	harness_recovered(&h, 1);
	release_all();
	harness_credit(&h, 10);
	harness_wait(&h, &h.narrival, 1);
	assert_int_equal(h.arrival[0]->envelope->id, id);
}

static void what_the_queue_has_is_not_adopted_again(void **state)
{
	(void)state;
	uint64_t id = adopt(0, 0, false);
	struct spool_store *s = harness_new_store(&h, 1, 100);
	s->envelope->id = s->id = id;
	s->adopted = true;
	loop_post(spool_loop(h.spool), &s->note);
	harness_wait(&h, &h.nrefused, 1);
	assert_int_equal(harness_count(&h), 1);
}

/* Its node has it still. */
static void what_is_damaged_before_it_is_released_comes_once_more(void **state)
{
	(void)state;
	uint64_t own = store_own(), id = adopt_store(harness_new_large(&h, ident_new()));
	harness_close(&h);
	harness_shell("rm '%s'/large/*", h.conf->spool, "");
	harness_open(&h);
	harness_recovered(&h, 1);
	assert_true(adopt_store(harness_new_large(&h, id)) == id);
	for (int starts = 0; starts < 2; starts++) {
		harness_crash(&h);
		harness_open(&h);
		harness_recovered(&h, 2);
	}
	release_all();
	harness_credit(&h, 10);
	harness_wait(&h, &h.narrival, 2);
	assert_true(h.arrival[0]->envelope->id == own && h.arrival[1]->envelope->id == id);
}

/* Whoever brought it has made the file anew, by its name. */
static void large_content_that_comes_once_more_stays(void **state)
{
	(void)state;
	uint64_t id = adopt_store(harness_new_large(&h, ident_new()));
	harness_shell("rm '%s'/large/*", h.conf->spool, "");
	struct spool_store *again = harness_new_large(&h, id);
	loop_post(spool_loop(h.spool), &again->note);
	harness_wait(&h, &h.nrefused, 1);
	assert_int_equal(harness_files(&h, "large"), 1);
	harness_crash(&h);
	harness_open(&h);
	harness_recovered(&h, 1);
	release_all();
	harness_credit(&h, 10);
	struct envelope *e = harness_take(&h);
	assert_int_equal(e->id, id);
	envelope_free(&e);
}

static void an_operator_has_to_wait(void **state)
{
	(void)state;
	uint64_t id = adopt(0, 0, false);
	struct spool_command *c = harness_ask(&h, SPOOL_DELETE, id, 0, 0);
	assert_int_equal(c->affected, 0);
	assert_int_equal(c->unmoved[SPOOL_ADOPTING], 1);
	spool_command_free(&c);
}

static void a_torn_line_of_the_file_is_written_over(void **state)
{
	(void)state;
	struct adoption a;
	uint64_t id[2] = {ident_new(), ident_new()};
	char *path = mem_printf("%s/adopting", h.conf->spool);
	note(&id[1], 1);
	FILE *f = fopen(path, "a");
	fputs("06ABC", f);
	fclose(f);
	note(id, 1);
	int folder = open(h.conf->spool, O_RDONLY | O_DIRECTORY);
	assert_true(adoption_read(&a, folder));
	close(folder);
	assert_int_equal(a.n, 2);
	assert_true(adoption_has(&a, id[0]) && adoption_has(&a, id[1]));
	assert_false(adoption_has(&a, id[1] + 1));
	adoption_fini(&a);
	free(path);
}

static void behind_a_closed_fence_nothing_is_stored_or_begun(void **state)
{
	(void)state;
	harness_credit(&h, 10);
	fence_set(0);
	assert_false(spool_accepting(h.spool));
	struct spool_store *s = harness_new_store(&h, 1, 100);
	loop_post(spool_loop(h.spool), &s->note);
	harness_wait(&h, &h.nrefused, 1);
	assert_int_equal(harness_count(&h), 0);
	fence_set(clock_up_ms() + 3600000);
	uint64_t id = harness_store(&h, 1, 100);
	harness_wait(&h, &h.narrival, 1);
	assert_int_equal(h.arrival[0]->envelope->id, id);
	assert_true(spool_accepting(h.spool));
	fence_set(clock_up_ms() - 1);
	assert_false(spool_accepting(h.spool));
	fence_set(FENCE_NEVER);
}

static void what_waits_is_not_begun_behind_a_closed_fence(void **state)
{
	(void)state;
	uint64_t id = store_own();
	fence_set(0);
	harness_credit(&h, 10);
	for (int i = 0; i < 2; i++)
		assert_int_equal(harness_count(&h), 1); /* a turn of the spool each */
	assert_int_equal(h.narrival, 0);
	fence_set(FENCE_NEVER);
	harness_credit(&h, 1);
	harness_wait(&h, &h.narrival, 1);
	assert_int_equal(h.arrival[0]->envelope->id, id);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HARNESS_TEST(what_is_adopted_waits_until_it_is_released),
		HARNESS_TEST(after_a_start_it_still_waits),
		HARNESS_TEST(what_is_disowned_is_gone_also_after_a_crash),
		HARNESS_TEST(what_is_on_its_way_is_disowned_too),
		HARNESS_TEST(what_is_disowned_after_an_unread_list_is_what_it_names),
		HARNESS_TEST(what_was_given_back_may_be_adopted_again),
		HARNESS_TEST(what_is_done_at_last_stays_done),
		HARNESS_TEST(large_content_that_was_given_back_comes_again),
		HARNESS_TEST(what_the_queue_has_is_not_adopted_again),
		HARNESS_TEST(large_content_that_comes_once_more_stays),
		HARNESS_TEST(what_is_damaged_before_it_is_released_comes_once_more),
		HARNESS_TEST(an_operator_has_to_wait),
		HARNESS_TEST(a_torn_line_of_the_file_is_written_over),
		HARNESS_TEST(behind_a_closed_fence_nothing_is_stored_or_begun),
		HARNESS_TEST(what_waits_is_not_begun_behind_a_closed_fence),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
