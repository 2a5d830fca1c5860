/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "base/clock.h"
#include "base/fine_timer.h"
#include "base/loop.h"
#include "base/mem.h"

#include <stdlib.h>
#include <unistd.h>

enum { SENDERS = 4, NOTES = 20000 };

struct letter {
	struct note note;
	int sender, number;
};

static atomic_int received;
static int next_of[SENDERS];
static atomic_int batches;
static int next_number;

static void receive(void *owner, struct note *n)
{
	struct letter *l = (struct letter *)n;
	assert_ptr_equal(owner, &received);
	if (l->number != next_of[l->sender]++)
		abort(); /* out of order: cmocka can't fail from another thread */
	free(l);
	atomic_fetch_add(&received, 1);
}

static void received_all(void *owner)
{
	(void)owner;
	atomic_fetch_add(&batches, 1);
}

static struct loop *to;

static void *send(void *arg)
{
	int sender = *(int *)arg;
	for (int i = 0; i < NOTES; i++) {
		struct letter *l = mailbox_note(sizeof *l, 1);
		l->sender = sender;
		l->number = i;
		loop_post(to, &l->note);
	}
	return NULL;
}

static void forget(void)
{
	atomic_store(&received, 0);
	atomic_store(&batches, 0);
	next_number = 0;
	for (int i = 0; i < SENDERS; i++)
		next_of[i] = 0;
}

static void notes_of_many_threads_all_arrive_and_each_thread_s_in_order(void **state)
{
	(void)state;
	pthread_t threads[SENDERS];
	int numbers[SENDERS];
	forget();
	to = loop_new("receiver", receive, received_all, &received);
	loop_start(to);
	for (int i = 0; i < SENDERS; i++) {
		numbers[i] = i;
		pthread_create(&threads[i], NULL, send, &numbers[i]);
	}
	for (int i = 0; i < SENDERS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 30000 && atomic_load(&received) < SENDERS * NOTES; i++)
		usleep(1000);
	assert_int_equal(atomic_load(&received), SENDERS * NOTES);
	assert_in_range(atomic_load(&batches), 1, SENDERS * NOTES);
	loop_stop(to);
	loop_free(&to);
	assert_null(to);
}

static void what_is_left_in_a_mailbox_is_received_when_it_is_closed(void **state)
{
	(void)state;
	int sender = 0;
	forget();
	to = loop_new("receiver", receive, NULL, &received);
	send(&sender);
	assert_int_equal(atomic_load(&received), 0);
	loop_free(&to);
	assert_int_equal(atomic_load(&received), NOTES);
}

static struct note *letter(void)
{
	struct letter *l = mailbox_note(sizeof *l, 1);
	l->number = next_number++;
	return &l->note;
}

/* What wakes the owner is seen by how many it has received after one look at its loop. */
static int received_after_a_look(void)
{
	ev_run(to->ev, EVRUN_NOWAIT);
	return atomic_load(&received);
}

static void an_owner_that_rests_is_woken_by_the_last_that_it_awaits(void **state)
{
	(void)state;
	forget();
	to = loop_new("receiver", receive, received_all, &received);
	mailbox_post_awaited(&to->mailbox, letter());
	assert_int_equal(received_after_a_look(), 1); /* it did not rest */
	mailbox_rest(&to->mailbox, 3);
	mailbox_post_idly(&to->mailbox, letter());
	mailbox_post_awaited(&to->mailbox, letter());
	mailbox_post_awaited(&to->mailbox, letter());
	assert_int_equal(received_after_a_look(), 1);
	mailbox_post_awaited(&to->mailbox, letter());
	assert_int_equal(received_after_a_look(), 5);
	mailbox_post_idly(&to->mailbox, letter());
	assert_int_equal(received_after_a_look(), 6); /* it rests no more */
	loop_free(&to);
}

static void an_owner_that_rests_is_woken_by_any_other_and_finds_all_when_it_looks(void **state)
{
	(void)state;
	forget();
	to = loop_new("receiver", receive, received_all, &received);
	mailbox_rest(&to->mailbox, 3);
	mailbox_post_awaited(&to->mailbox, letter());
	assert_int_equal(received_after_a_look(), 0);
	mailbox_post(&to->mailbox, letter());
	assert_int_equal(received_after_a_look(), 2);
	mailbox_rest(&to->mailbox, 3);
	mailbox_post_idly(&to->mailbox, letter());
	assert_int_equal(received_after_a_look(), 2);
	assert_true(mailbox_drain(&to->mailbox));
	assert_int_equal(atomic_load(&received), 3);
	loop_free(&to);
}

static int64_t expired_us;

static void expire(void *owner)
{
	struct loop *l = owner;
	expired_us = clock_steady_us();
	ev_break(l->ev, EVBREAK_ALL);
}

static void a_fine_timer_expires_within_a_millisecond_and_not_when_it_is_stopped(void **state)
{
	(void)state;
	struct fine_timer timer;
	struct loop *l = loop_new("timer", receive, NULL, &received);
	fine_timer_init(&timer, l, expire, l);
	int64_t soonest_us = INT64_MAX;
	for (int i = 0; i < 10000 && (i < 20 || soonest_us >= 900); i++) {
		int64_t began_us = clock_steady_us();
		fine_timer_start(&timer, 200);
		ev_run(l->ev, 0);
		assert_true(expired_us - began_us >= 200);
		if (expired_us - began_us < soonest_us)
			soonest_us = expired_us - began_us;
	}
	assert_true(soonest_us < 900); /* the machine may be busy, but not each time */
	expired_us = 0;
	fine_timer_start(&timer, 1);
	usleep(1000);
	fine_timer_stop(&timer);
	ev_run(l->ev, EVRUN_NOWAIT);
	assert_int_equal(expired_us, 0);
	fine_timer_fini(&timer);
	loop_free(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(notes_of_many_threads_all_arrive_and_each_thread_s_in_order),
		cmocka_unit_test(what_is_left_in_a_mailbox_is_received_when_it_is_closed),
		cmocka_unit_test(an_owner_that_rests_is_woken_by_the_last_that_it_awaits),
		cmocka_unit_test(
			an_owner_that_rests_is_woken_by_any_other_and_finds_all_when_it_looks),
		cmocka_unit_test(
			a_fine_timer_expires_within_a_millisecond_and_not_when_it_is_stopped),
	};
	return RUN(tests);
}
