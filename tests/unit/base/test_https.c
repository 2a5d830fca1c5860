/* SPDX-License-Identifier: ISC */
/* Requests, where the system's look-up of a name does not come back: a getaddrinfo() of the test's takes its place. */
#include "tests/unit/base/unit.h"

#include "base/clock.h"
#include "base/https.h"

#include <netdb.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>

enum { HELD_S = 5 };

static sem_t asked, release;
static atomic_int held, left;
static struct loop *l;
static struct https *https;
static int nanswers;

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
		struct addrinfo **found)
{
	struct timespec until;
	(void)name, (void)service, (void)hints;
	*found = NULL;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += HELD_S;
	atomic_fetch_add(&held, 1);
	sem_post(&asked);
	sem_timedwait(&release, &until);
	atomic_fetch_add(&left, 1);
	return EAI_AGAIN;
}

static void receive(void *owner, struct note *n)
{
	(void)owner;
	(void)n;
}

static int start(void **state)
{
	(void)state;
	held = left = nanswers = 0;
	sem_init(&asked, 0, 0);
	sem_init(&release, 0, 0);
	l = loop_new("test", receive, NULL, NULL);
	https = https_new(l);
	return 0;
}

/* Nobody refers to the semaphores any more when all have left. */
static int stop(void **state)
{
	(void)state;
	https_free(&https);
	for (int i = 0; i < held; i++)
		sem_post(&release);
	while (left < held)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	loop_free(&l);
	return 0;
}

static void on_answer(void *owner, const struct https_answer *a)
{
	(void)owner;
	assert_non_null(a->error);
	nanswers++;
}

static struct https_request *begin(int64_t timeout_ms)
{
	const struct https_order order = {.url = "https://token.test/", .timeout_ms = timeout_ms};
	return https_begin(https, &order, on_answer, NULL);
}

static void a_request_ends_in_time_though_its_name_is_still_looked_for(void **state)
{
	(void)state;
	begin(50);
	while (nanswers == 0)
		ev_run(l->ev, EVRUN_ONCE);
	assert_int_equal(held, 1);
	assert_int_equal(left, 0);
}

static void who_drops_a_request_does_not_wait_for_its_name(void **state)
{
	(void)state;
	struct https_request *r = begin(60000);
	while (sem_trywait(&asked) != 0)
		ev_run(l->ev, EVRUN_ONCE);
	https_drop(&r);
	assert_int_equal(left, 0);
	assert_int_equal(nanswers, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_request_ends_in_time_though_its_name_is_still_looked_for, start, stop),
		cmocka_unit_test_setup_teardown(who_drops_a_request_does_not_wait_for_its_name,
						start, stop),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
