/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

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
		struct letter *l = mem_zalloc(sizeof *l);
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
	for (int i = 0; i < 5000 && atomic_load(&received) < SENDERS * NOTES; i++)
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(notes_of_many_threads_all_arrive_and_each_thread_s_in_order),
		cmocka_unit_test(what_is_left_in_a_mailbox_is_received_when_it_is_closed),
	};
	return RUN(tests);
}
