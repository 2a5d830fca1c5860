/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "base/thread.h"
#include "base/thread_pool.h"

#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { JOBS = 10 };

struct job {
	struct thread_pool_job job; /* first */
	sem_t *gate;
};

static atomic_int begun, worked, done;
static sem_t gate;

static void work(struct thread_pool_job *job)
{
	atomic_fetch_add(&begun, 1);
	sem_wait(((struct job *)job)->gate);
	atomic_fetch_add(&worked, 1);
}

static void finish(struct thread_pool_job *job)
{
	(void)job;
	atomic_fetch_add(&done, 1);
}

static int start(void **state)
{
	(void)state;
	begun = worked = done = 0;
	return sem_init(&gate, 0, 0);
}

static void fill(struct job job[JOBS])
{
	for (int i = 0; i < JOBS; i++)
		job[i] = (struct job){.job = {.work = work, .done = finish}, .gate = &gate};
}

static void until(atomic_int *count, int n)
{
	while (atomic_load(count) < n)
		sched_yield();
}

static void all_that_is_taken_is_done(void **state)
{
	struct job job[JOBS];
	struct thread_pool *p = thread_pool_new("pool", 3, JOBS);
	(void)state;
	fill(job);
	thread_pool_start(p);
	for (int i = 0; i < JOBS; i++)
		assert_true(thread_pool_give(p, &job[i].job));
	until(&begun, 3);
	for (int i = 0; i < JOBS; i++)
		sem_post(&gate);
	until(&done, JOBS);
	thread_pool_free(&p);
	assert_int_equal(worked, JOBS);
}

/* Brief ones are told of together, but never while one that is not brief is worked on, or none waits. */
static void brief_jobs_wait_for_no_other(void **state)
{
	struct job job[JOBS];
	struct thread_pool *p = thread_pool_new("pool", 1, JOBS);
	(void)state;
	fill(job);
	for (int i = 0; i < JOBS; i++) {
		job[i].job.brief = i != 2 && i != 5;
		assert_true(thread_pool_give(p, &job[i].job));
	}
	thread_pool_start(p);
	for (int i = 0; i < JOBS; i++) {
		until(&begun, i + 1);
		if (i == 2 || i == 5)
			assert_int_equal(done, i);
		sem_post(&gate);
	}
	until(&done, JOBS);
	thread_pool_free(&p);
	assert_int_equal(worked, JOBS);
}

static void a_full_queue_takes_no_more(void **state)
{
	struct job job[JOBS];
	struct thread_pool *p = thread_pool_new("pool", 1, 2);
	(void)state;
	fill(job);
	assert_true(thread_pool_give(p, &job[0].job));
	assert_true(thread_pool_give(p, &job[1].job));
	assert_false(thread_pool_give(p, &job[2].job));
	thread_pool_start(p);
	until(&begun, 1);
	assert_true(thread_pool_give(p, &job[2].job));
	assert_false(thread_pool_give(p, &job[3].job));
	for (int i = 0; i < 3; i++)
		sem_post(&gate);
	until(&done, 3);
	thread_pool_free(&p);
	assert_int_equal(done, 3);
}

struct noted {
	struct thread_pool_job job; /* first */
	char mark;
};

enum { MANY = 2 * THREAD_POOL_IN_A_ROW + 3, FEW = 4 };

static char order[MANY + FEW + 1];

static void note(struct thread_pool_job *job)
{
	order[atomic_fetch_add(&worked, 1)] = ((struct noted *)job)->mark;
}

/* A is given always, and c counts: so passwords that are guessed wait for mail, and still come in between. */
static void what_is_given_always_goes_first_but_not_for_ever(void **state)
{
	struct noted counted[FEW], always[MANY];
	char wanted[MANY + FEW + 1] = "";
	struct thread_pool *p = thread_pool_new("pool", 1, FEW);
	(void)state;
	for (int i = 0; i < FEW; i++) {
		counted[i] = (struct noted){{.work = note, .done = finish}, 'c'};
		assert_true(thread_pool_give(p, &counted[i].job));
	}
	for (int i = 0; i < MANY; i++) {
		always[i] = (struct noted){{.work = note, .done = finish}, 'A'};
		assert_true(thread_pool_give_always(p, &always[i].job));
	}
	thread_pool_start(p);
	until(&done, MANY + FEW);
	thread_pool_free(&p);
	memset(wanted, 'A', MANY);
	wanted[THREAD_POOL_IN_A_ROW] = wanted[2 * THREAD_POOL_IN_A_ROW + 1] = 'c';
	memcpy(wanted + 2 * THREAD_POOL_IN_A_ROW + 2, "AAAcc", 5);
	assert_string_equal(order, wanted);
}

/* Turns are taken from when both wait: what came before does not count. */
static void those_that_were_alone_have_had_no_turn(void **state)
{
	struct noted counted, always[MANY];
	struct thread_pool *p = thread_pool_new("pool", 1, FEW);
	(void)state;
	memset(order, 0, sizeof order);
	counted = (struct noted){{.work = note, .done = finish}, 'c'};
	for (int i = 0; i < MANY; i++)
		always[i] = (struct noted){{.work = note, .done = finish}, 'A'};
	for (int i = 0; i < THREAD_POOL_IN_A_ROW; i++)
		assert_true(thread_pool_give_always(p, &always[i].job));
	thread_pool_start(p);
	until(&done, THREAD_POOL_IN_A_ROW);
	struct job held = {.job = {.work = work, .done = finish}, .gate = &gate};
	assert_true(thread_pool_give_always(p, &held.job));
	until(&begun, 1);
	assert_true(thread_pool_give(p, &counted.job));
	assert_true(thread_pool_give_always(p, &always[THREAD_POOL_IN_A_ROW].job));
	sem_post(&gate);
	until(&done, THREAD_POOL_IN_A_ROW + 3);
	thread_pool_free(&p);
	assert_int_equal(order[THREAD_POOL_IN_A_ROW + 1], 'A');
	assert_int_equal(order[THREAD_POOL_IN_A_ROW + 2], 'c');
}

static void what_waits_at_the_end_comes_back_undone(void **state)
{
	struct job job[JOBS];
	struct thread_pool *p = thread_pool_new("pool", 1, JOBS);
	(void)state;
	fill(job);
	for (int i = 0; i < 3; i++)
		assert_true(thread_pool_give(p, &job[i].job));
	assert_true(thread_pool_give_always(p, &job[3].job));
	thread_pool_stop(p);
	assert_int_equal(worked, 0);
	assert_int_equal(done, 4);
	assert_false(job[0].job.worked);
	assert_false(thread_pool_give(p, &job[4].job));
	thread_pool_free(&p);
}

#define T(test) cmocka_unit_test_setup(test, start)

static atomic_int niceness;

static void note_niceness(struct thread_pool_job *job)
{
	(void)job;
	atomic_store(&niceness, getpriority(PRIO_PROCESS, (id_t)gettid()));
}

static int niceness_in_pool(bool gives_way)
{
	struct thread_pool_job job = {.work = note_niceness, .done = finish};
	struct thread_pool *p = thread_pool_new("pool", 1, 1);
	if (gives_way)
		thread_pool_give_way(p);
	thread_pool_start(p);
	int before = atomic_load(&done);
	assert_true(thread_pool_give(p, &job));
	until(&done, before + 1);
	thread_pool_free(&p);
	return niceness;
}

static void a_pool_that_computes_gives_way_and_one_that_waits_does_not(void **state)
{
	int own = getpriority(PRIO_PROCESS, 0);
	(void)state;
	assert_int_equal(niceness_in_pool(false), own);
	if (own <= THREAD_NICENESS)
		assert_int_equal(niceness_in_pool(true), THREAD_NICENESS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(all_that_is_taken_is_done),
		T(brief_jobs_wait_for_no_other),
		T(a_full_queue_takes_no_more),
		T(what_is_given_always_goes_first_but_not_for_ever),
		T(those_that_were_alone_have_had_no_turn),
		T(what_waits_at_the_end_comes_back_undone),
		T(a_pool_that_computes_gives_way_and_one_that_waits_does_not),
	};
	return RUN(tests);
}
