/* SPDX-License-Identifier: ISC */
#include "harness.h"

#include "base/fence.h"
#include "base/list.h"
#include "base/loop.h"
#include "spool/replicate.h"
#include "spool/scan.h"
#include "spool/segment.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/stat.h>

/* Somebody who keeps a copy, and has it when the test says so, or at once. */
static struct {
	struct loop *loop;
	atomic_int segments, written, asked, known, large, gone;
	_Atomic uint64_t barrier;
	atomic_bool answers;
} keeper;

enum { SECOND_START = 2 }; /* the number of its first segment, in a queue that is empty */

static void post(enum replicate_note type, uint64_t barrier, bool away)
{
	struct replicate *r = mem_zalloc(sizeof *r);
	r->note.type = (int)type;
	r->of = barrier;
	r->away = away;
	loop_post(spool_loop(h.spool), &r->note);
}

static void hear(void *owner, struct note *note)
{
	struct replicate *r = (struct replicate *)note;
	(void)owner;
	if (note->type == REPLICATE_ASK) {
		atomic_store(&keeper.barrier, r->of);
		if (atomic_load(&keeper.answers))
			post(SPOOL_REPLICATED, r->of, false);
	}
	atomic_fetch_add(note->type == REPLICATE_SEGMENT ? &keeper.segments
			 : note->type == REPLICATE_ASK	 ? &keeper.asked
			 : note->type == REPLICATE_KNOWN ? &keeper.known
			 : note->type == REPLICATE_LARGE ? &keeper.large
			 : note->type == REPLICATE_GONE	 ? &keeper.gone
							 : &keeper.written,
			 1);
	content_file_unref(r->file);
	free(r);
}

static void open_adoptable(bool degrade, bool starts_wait)
{
	struct buf error = {0};
	if (h.spool)
		harness_close(&h);
	memset(&keeper, 0, sizeof keeper);
	keeper.loop = loop_new("keeper", hear, NULL, NULL);
	h.spool = spool_new(h.conf, h.loop, &error);
	assert_non_null(h.spool);
	spool_replicate(h.spool, keeper.loop, true, degrade);
	replicate_starts(h.spool, starts_wait);
	loop_start(keeper.loop);
	spool_start(h.spool);
	buf_fini(&error);
}

static void open_with_keeper(bool degrade)
{
	open_adoptable(degrade, false);
}

static void close_both(void)
{
	harness_close(&h);
	loop_stop(keeper.loop);
	loop_free(&keeper.loop);
}

/* All that has been asked, and whatever will be: what waited and what is new may be asked for one by one. */
static void answer_all(void)
{
	atomic_store(&keeper.answers, true);
	post(SPOOL_REPLICATED, atomic_load(&keeper.barrier), false);
}

static void store(bool promised)
{
	struct spool_store *s = harness_new_store(&h, 1, 100);
	s->promised = promised;
	loop_post(spool_loop(h.spool), &s->note);
}

static void wait_for(atomic_int *count, int n)
{
	for (int i = 0; i < WAIT_MS && atomic_load(count) < n; i++)
		usleep(1000);
	assert_true(atomic_load(count) >= n);
}

static void a_message_waits_until_the_copy_is_there(void **state)
{
	(void)state;
	open_with_keeper(false);
	harness_credit(&h, 10);
	store(true);
	wait_for(&keeper.asked, 1);
	store(false);
	harness_wait(&h, &h.nstored, 1); /* whom nobody promised anything waits for nothing */
	harness_wait(&h, &h.narrival, 1);
	assert_int_equal(harness_count(&h), 1);
	post(SPOOL_REPLICATED, atomic_load(&keeper.barrier), false);
	harness_wait(&h, &h.nstored, 2);
	harness_wait(&h, &h.narrival, 2);
	assert_int_equal(harness_count(&h), 2);
	assert_int_equal(h.nrefused, 0);
	close_both();
	harness_open(&h);
	harness_recovered(&h, 2);
}

static void what_waits_is_refused_while_it_is_away(void **state)
{
	(void)state;
	open_with_keeper(false);
	harness_credit(&h, 10);
	store(true);
	wait_for(&keeper.asked, 1);
	assert_true(spool_accepting(h.spool));
	post(SPOOL_REPLICA_AWAY, 0, true);
	harness_wait(&h, &h.nrefused, 1);
	store(true);
	harness_wait(&h, &h.nrefused, 2);
	assert_false(spool_accepting(h.spool));
	store(false);
	harness_wait(&h, &h.nstored, 1);
	post(SPOOL_REPLICA_AWAY, 0, false);
	store(true);
	wait_for(&keeper.asked, 2);
	post(SPOOL_REPLICATED, atomic_load(&keeper.barrier), false);
	harness_wait(&h, &h.nstored, 2);
	assert_true(spool_accepting(h.spool));
	harness_wait(&h, &h.narrival, 2); /* nobody has worked on what was refused */
	assert_int_equal(harness_count(&h), 2);
	close_both();
	harness_open(&h);
	harness_recovered(&h, 2);
}

/* How many records say that a message is done, and where the last does. */
static int finishes(int folder, uint64_t seq, uint64_t *last)
{
	int64_t changed_ms;
	int n = 0;
	struct scan scan;
	struct segment *g = segment_open(folder, seq, O_RDONLY, &changed_ms);
	assert_non_null(g);
	scan_init(&scan, g->file->fd, g->seed, g->size);
	while (scan_next(&scan) == SCAN_RECORD)
		if (scan.record.type == RECORD_FINISH) {
			*last = scan.from;
			n++;
		}
	scan_fini(&scan);
	segment_free(&g);
	return n;
}

/* The power takes it. */
static void lose_last_finish(uint64_t seq)
{
	char name[SEGMENT_NAME];
	uint64_t last = 0;
	char *log = mem_printf("%s/log", h.conf->spool);
	char *path = mem_printf("%s/%s", log, segment_name(seq, name));
	struct stat is;
	int folder = open(log, O_RDONLY | O_DIRECTORY);
	assert_int_equal(finishes(folder, seq, &last), 2);
	assert_int_equal(stat(path, &is), 0);
	assert_int_equal(truncate(path, (off_t)last), 0);
	assert_int_equal(truncate(path, is.st_size), 0); /* zeros */
	close(folder);
	free(path);
	free(log);
}

static void of_two_that_are_refused_none_comes_back_alone(void **state)
{
	(void)state;
	open_with_keeper(false);
	struct spool_store *s = harness_new_store(&h, 1, 100);
	s->with = harness_new_store(&h, 1, 100);
	s->with->reply_to = NULL;
	s->promised = true;
	loop_post(spool_loop(h.spool), &s->note);
	wait_for(&keeper.asked, 1);
	post(SPOOL_REPLICA_AWAY, 0, true);
	harness_wait(&h, &h.nrefused, 1);
	assert_int_equal(harness_count(&h), 0);
	harness_crash(&h);
	loop_stop(keeper.loop);
	loop_free(&keeper.loop);
	lose_last_finish(SECOND_START);
	harness_open(&h);
	harness_recovered(&h, 0);
}

static void degraded_it_is_taken_while_it_is_away(void **state)
{
	(void)state;
	open_with_keeper(true);
	harness_credit(&h, 10);
	store(true);
	wait_for(&keeper.asked, 1);
	post(SPOOL_REPLICA_AWAY, 0, true);
	harness_wait(&h, &h.nstored, 1);
	store(true);
	harness_wait(&h, &h.nstored, 2);
	assert_true(spool_accepting(h.spool));
	assert_int_equal(atomic_load(&keeper.asked), 1);
	close_both();
}

static void who_ends_while_it_is_away_waits_for_no_start(void **state)
{
	(void)state;
	open_adoptable(false, true);
	store(false);
	harness_wait(&h, &h.nstored, 1);
	harness_credit(&h, 10);
	wait_for(&keeper.asked, 1); /* its start waits */
	post(SPOOL_REPLICA_AWAY, 0, true);
	alarm(60); /* else it would wait for ever */
	close_both();
	alarm(0);
	harness_open(&h);
	harness_credit(&h, 10);
	struct envelope *e = harness_take(&h);
	envelope_free(&e);
	assert_int_equal(h.narrival, 1);
}

/* It is full: nothing would ever leave. */
static void what_waits_is_begun_when_the_copy_says_that_it_goes_on_alone(void **state)
{
	(void)state;
	open_adoptable(false, true);
	harness_credit(&h, 10);
	store(false);
	wait_for(&keeper.asked, 1); /* its start waits */
	post(SPOOL_REPLICA_AWAY, 0, true);
	struct replicate *r = mem_zalloc(sizeof *r);
	r->note.type = SPOOL_REPLICA_AWAY;
	r->away = r->alone = true;
	loop_post(spool_loop(h.spool), &r->note);
	harness_wait(&h, &h.narrival, 1);
	store(false); /* and this one waits for nothing */
	harness_wait(&h, &h.narrival, 2);
	int asked = atomic_load(&keeper.asked);
	post(SPOOL_REPLICA_AWAY, 0, false);
	store(false);
	wait_for(&keeper.asked, asked + 1);
	assert_int_equal(h.narrival, 2);
	answer_all();
	harness_wait(&h, &h.narrival, 3);
	close_both();
	harness_open(&h);
}

static void what_has_waited_is_asked_for_again_when_it_is_back(void **state)
{
	(void)state;
	open_adoptable(false, true);
	harness_credit(&h, 10);
	store(false);
	wait_for(&keeper.asked, 1); /* its start waits */
	post(SPOOL_REPLICA_AWAY, 0, true);
	post(SPOOL_REPLICA_AWAY, 0, false);
	wait_for(&keeper.asked, 2);
	post(SPOOL_REPLICATED, atomic_load(&keeper.barrier), false);
	harness_wait(&h, &h.narrival, 1);
	close_both();
	harness_open(&h);
}

static void a_copy_that_never_comes_costs_no_room(void **state)
{
	(void)state;
	open_with_keeper(false);
	for (int i = 0; i < 50; i++)
		store(true);
	wait_for(&keeper.asked, 1);
	post(SPOOL_REPLICA_AWAY, 0, true);
	harness_wait(&h, &h.nrefused, 50);
	close_both();
	open_with_keeper(false);
	wait_for(&keeper.known, 1);
	wait_for(&keeper.gone, 1);
	harness_recovered(&h, 0);
	close_both();
}

static void what_was_there_is_named(void **state)
{
	(void)state;
	harness_store(&h, 1, 100);
	harness_wait(&h, &h.nstored, 1);
	open_with_keeper(false);
	wait_for(&keeper.known, 1);
	assert_true(atomic_load(&keeper.segments) >= 2);
	close_both();
}

/* The copy says that it has all that was said before the last barrier but these. */
static void answer_all_but(uint64_t newest)
{
	post(SPOOL_REPLICATED, atomic_load(&keeper.barrier) - newest, false);
}

static void a_barrier_answers_only_what_was_asked_before_it(void **state)
{
	(void)state;
	open_with_keeper(false);
	for (int i = 1; i <= 2; i++) {
		store(true);
		wait_for(&keeper.asked, i);
	}
	answer_all_but(1);
	harness_wait(&h, &h.nstored, 1);
	assert_int_equal(harness_count(&h), 1);
	assert_int_equal(h.nstored, 1);
	answer_all_but(0);
	harness_wait(&h, &h.nstored, 2);
	close_both();
}

static void while_the_copy_is_awaited_another_node_may_take_over(void **state)
{
	(void)state;
	open_with_keeper(false);
	harness_credit(&h, 10);
	store(true);
	wait_for(&keeper.asked, 1);
	fence_set(0);
	answer_all_but(0);
	for (int i = 0; i < WAIT_MS && h.nrefused + h.nstored == 0; i++) {
		harness_count(&h);
		usleep(1000);
	}
	fence_set(FENCE_NEVER);
	assert_int_equal(h.nrefused, 1);
	assert_int_equal(h.narrival, 0);
	close_both();
	harness_open(&h);
	harness_recovered(&h, 0);
}

/* Where another node may adopt the queue, it has to know what is in doubt. */
static void nothing_is_begun_before_the_copy_says_so(void **state)
{
	(void)state;
	open_adoptable(false, true);
	harness_credit(&h, 10);
	store(false);
	wait_for(&keeper.asked, 1);
	harness_wait(&h, &h.nstored, 1);
	for (int i = 0; i < 2; i++)
		assert_int_equal(harness_count(&h), 1);
	assert_int_equal(h.narrival, 0);
	answer_all_but(0);
	harness_wait(&h, &h.narrival, 1);
	/* Seldom does anything else wake the thread now. */
	for (int i = 2; i <= 4; i++) {
		store(false);
		wait_for(&keeper.asked, i);
		answer_all_but(0);
		harness_wait(&h, &h.narrival, i);
	}
	close_both();
}

static void degraded_it_is_taken_but_not_begun_while_the_copy_is_away(void **state)
{
	(void)state;
	open_adoptable(true, true);
	harness_credit(&h, 10);
	post(SPOOL_REPLICA_AWAY, 0, true);
	store(true);
	harness_wait(&h, &h.nstored, 1);
	for (int i = 0; i < 2; i++)
		assert_int_equal(harness_count(&h), 1);
	assert_int_equal(h.narrival, 0);
	post(SPOOL_REPLICA_AWAY, 0, false);
	wait_for(&keeper.asked, 1);
	answer_all_but(0);
	harness_wait(&h, &h.narrival, 1);
	close_both();
}

/* Nothing else has it afterwards: who waits for no client waits all the same. */
static void what_is_adopted_waits_for_the_copy(void **state)
{
	(void)state;
	open_with_keeper(true);
	struct spool_store *s = harness_new_store(&h, 1, 100);
	s->adopted = true;
	loop_post(spool_loop(h.spool), &s->note);
	wait_for(&keeper.asked, 1);
	post(SPOOL_REPLICA_AWAY, 0, true);
	harness_count(&h);
	assert_int_equal(h.nstored + h.nrefused, 0);
	answer_all_but(0);
	harness_wait(&h, &h.nstored, 1);
	close_both();
}

/* Of whoever ends before the copy has it the next start has all, large content too. */
static void large_content_that_waits_for_the_copy_stays(void **state)
{
	(void)state;
	open_with_keeper(true);
	loop_post(spool_loop(h.spool), &harness_new_large(&h, ident_new())->note);
	wait_for(&keeper.asked, 1);
	post(SPOOL_REPLICA_AWAY, 0, true);
	close_both();
	assert_int_equal(harness_files(&h, "large"), 1);
	harness_open(&h);
	harness_recovered(&h, 1);
	assert_int_equal(harness_files(&h, "quarantine"), 0);
}

static void order_hold(uint64_t id)
{
	struct spool_command *c = spool_command_new(SPOOL_SUSPEND, h.loop, NULL);
	c->id = id;
	loop_post(spool_loop(h.spool), &c->note);
}

static void answer_says(bool uncopied)
{
	assert_int_equal(h.command->op, SPOOL_SUSPEND);
	assert_int_equal(h.command->affected, 1);
	assert_false(h.command->unsafe);
	assert_int_equal(h.command->uncopied, uncopied);
	spool_command_free(&h.command);
}

static void an_order_is_answered_when_the_copy_has_it(void **state)
{
	(void)state;
	open_with_keeper(false);
	store(false);
	store(false);
	harness_wait(&h, &h.nstored, 2);
	order_hold(h.stored[0]);
	wait_for(&keeper.asked, 1);
	uint64_t first = atomic_load(&keeper.barrier);
	order_hold(h.stored[1]);
	wait_for(&keeper.asked, 2);
	harness_count(&h); /* which is answered */
	assert_int_equal(h.ncommand, 1);
	post(SPOOL_REPLICATED, first, false);
	harness_wait(&h, &h.ncommand, 2);
	answer_says(false);
	harness_count(&h);
	assert_int_equal(h.ncommand, 3);
	post(SPOOL_REPLICATED, atomic_load(&keeper.barrier), false);
	harness_wait(&h, &h.ncommand, 4);
	answer_says(false);
	close_both();
	harness_open(&h);
}

static void an_order_that_the_copy_has_not_says_so(void **state)
{
	(void)state;
	open_with_keeper(false);
	for (int i = 0; i < 3; i++)
		store(false);
	harness_wait(&h, &h.nstored, 3);
	order_hold(h.stored[0]);
	wait_for(&keeper.asked, 1);
	post(SPOOL_REPLICA_AWAY, 0, true);
	harness_wait(&h, &h.ncommand, 1);
	answer_says(true);
	order_hold(h.stored[1]);
	harness_wait(&h, &h.ncommand, 2);
	answer_says(true);
	post(SPOOL_REPLICA_AWAY, 0, false);
	order_hold(h.stored[2]);
	wait_for(&keeper.asked, 2);
	close_both(); /* nobody has its answer */
	harness_open(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HARNESS_TEST(a_message_waits_until_the_copy_is_there),
		HARNESS_TEST(what_waits_is_refused_while_it_is_away),
		HARNESS_TEST(of_two_that_are_refused_none_comes_back_alone),
		HARNESS_TEST(degraded_it_is_taken_while_it_is_away),
		HARNESS_TEST(who_ends_while_it_is_away_waits_for_no_start),
		HARNESS_TEST(what_waits_is_begun_when_the_copy_says_that_it_goes_on_alone),
		HARNESS_TEST(what_has_waited_is_asked_for_again_when_it_is_back),
		HARNESS_TEST(a_copy_that_never_comes_costs_no_room),
		HARNESS_TEST(what_was_there_is_named),
		HARNESS_TEST(a_barrier_answers_only_what_was_asked_before_it),
		HARNESS_TEST(while_the_copy_is_awaited_another_node_may_take_over),
		HARNESS_TEST(nothing_is_begun_before_the_copy_says_so),
		HARNESS_TEST(degraded_it_is_taken_but_not_begun_while_the_copy_is_away),
		HARNESS_TEST(what_is_adopted_waits_for_the_copy),
		HARNESS_TEST(large_content_that_waits_for_the_copy_stays),
		HARNESS_TEST(an_order_is_answered_when_the_copy_has_it),
		HARNESS_TEST(an_order_that_the_copy_has_not_says_so),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
