/* SPDX-License-Identifier: ISC */
/* A session that waits: answers at once, late, twice, never, and after the client has gone. */
#include "tests/unit/smtpd/unit.h"

#include "base/descriptors.h"
#include "base/mem.h"
#include "smtpd/session.h"
#include "smtpd/session_run.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct conf *conf;
static struct clients *clients;
static struct smtpd_worker *w;
static struct listener listener;
static atomic_long connections;
static struct session *s;
static int client; /* the other end */
static int answered, expired, ended, freed;

static void on_answered(struct session *it, void *answer)
{
	assert_non_null(answer);
	assert_ptr_equal(it, s);
	answered++;
	if (it->stream)
		session_reply(it, RESPONSE_OK);
}

static void on_expired(struct session *it)
{
	expired++;
	if (it->stream)
		session_reply(it, RESPONSE_TIMED_OUT, "we");
}

static void on_ended(struct session *it)
{
	(void)it;
	ended++;
}

static const struct wait_kind certain = {.text = "certain", .answered = on_answered};
static const struct wait_kind bounded = {
	.text = "bounded", .answered = on_answered, .expired = on_expired, .ended = on_ended};
static const struct wait_kind outliving = {
	.text = "outliving", .answered = on_answered, .outlives = true};
static const struct wait_kind pausing = {.text = "pausing", .expired = on_expired, .pause = true};

static void free_answer(struct wait_answer *a)
{
	freed++;
	free(a);
}

static void answer(uint64_t cookie)
{
	struct wait_answer *a = mem_zalloc(sizeof *a);
	a->cookie = cookie;
	a->reply_to = w->loop;
	a->free = free_answer;
	wait_answer_post(a);
}

/* All that the worker has to do now. */
static void work(void)
{
	for (int i = 0; i < 5; i++)
		ev_run(w->loop->ev, EVRUN_NOWAIT);
}

static void say(const char *text)
{
	assert_int_equal(write(client, text, strlen(text)), strlen(text));
	work();
}

/* What the client has been told since it was last asked. */
static const char *heard(void)
{
	static char text[4096];
	work();
	ssize_t n = recv(client, text, sizeof text - 1, MSG_DONTWAIT);
	text[n > 0 ? n : 0] = '\0';
	return text;
}

static void wait_until(const int *count, int n)
{
	for (int i = 0; i < 1000 && *count < n; i++)
		ev_run(w->loop->ev, EVRUN_ONCE);
	assert_int_equal(*count, n);
}

/* What the listener counts before. */
static void open_session(int fd, const union address *peer)
{
	static const struct conf_listener no_limits;
	atomic_fetch_add(&connections, 1);
	descriptors_count(DESCRIPTORS_CLIENTS);
	assert_int_equal(clients_enter(clients, peer, listener.number, &no_limits, 0),
			 CLIENTS_WELCOME);
	session_open(&listener, fd, peer);
}

static int start(void **state)
{
	(void)state;
	struct buf error = {0};
	union address peer = {.in = {.sin_family = AF_INET}};
	int fd[2];
	conf = conf_defaults();
	clients = clients_new();
	w = smtpd_worker_new(conf, NULL, clients);
	listener = (struct listener){.worker = w, .connections = &connections, .fd = -1};
	listener.service = service_new(conf, &conf->listener[0], &error);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
	client = fd[1];
	answered = expired = ended = freed = 0;
	open_session(fd[0], &peer);
	s = list_entry(w->sessions.next, struct session, link);
	heard();
	say("EHLO client.example\r\n");
	assert_non_null(strstr(heard(), "PIPELINING"));
	return 0;
}

static int end(void **state)
{
	(void)state;
	if (client >= 0)
		close(client);
	smtpd_worker_free(&w);
	clients_free(&clients);
	service_unref(listener.service);
	conf_unref(conf);
	return 0;
}

/* With a reply unread, so that it is no mere end of what it sends. */
static void leave(void)
{
	close(client);
	client = -1;
	work();
}

static void an_answer_that_is_there_at_once_is_given(void **state)
{
	(void)state;
	answer(wait_begin(s, &certain, 0));
	assert_int_equal(s->state, SESSION_WAIT);
	assert_string_equal(heard(), "250 2.0.0 Ok\r\n");
	assert_int_equal(s->state, SESSION_READY);
	assert_int_equal(freed, 1);
}

static void what_is_said_meanwhile_is_read_after_the_answer(void **state)
{
	(void)state;
	uint64_t cookie = wait_begin(s, &bounded, 60000);
	say("VRFY x\r\nNOO");
	say("P\r\n");
	assert_string_equal(heard(), "");
	answer(cookie);
	assert_string_equal(heard(), "250 2.0.0 Ok\r\n252 2.5.2 Cannot VRFY user, but will "
				     "attempt delivery\r\n250 2.0.0 Ok\r\n");
}

static void an_answer_that_comes_late_does_nothing(void **state)
{
	(void)state;
	uint64_t cookie = wait_begin(s, &bounded, 1);
	wait_until(&expired, 1);
	assert_string_equal(heard(), "421 4.4.2 we Timeout exceeded, closing connection\r\n");
	answer(cookie);
	assert_string_equal(heard(), "");
	assert_int_equal(answered, 0);
	assert_int_equal(freed, 1);
	say("NOOP\r\n");
	assert_string_equal(heard(), "250 2.0.0 Ok\r\n");
}

static void a_second_answer_is_not_taken_for_that_of_the_next_wait(void **state)
{
	(void)state;
	uint64_t first = wait_begin(s, &bounded, 60000);
	answer(first);
	answer(first);
	work();
	assert_int_equal(answered, 1);
	uint64_t second = wait_begin(s, &bounded, 60000);
	assert_true(first != second);
	answer(first);
	work();
	assert_int_equal(answered, 1);
	assert_int_equal(s->state, SESSION_WAIT);
	answer(second);
	work();
	assert_int_equal(answered, 2);
	assert_int_equal(freed, 4);
}

static void without_an_answer_the_deadline_ends_it(void **state)
{
	(void)state;
	wait_begin(s, &bounded, 1);
	wait_until(&expired, 1);
	assert_int_equal(s->state, SESSION_READY);
	assert_int_equal(ended, 0);
}

static void when_the_client_has_gone_the_answer_finds_nobody(void **state)
{
	(void)state;
	say("NOOP\r\n");
	uint64_t cookie = wait_begin(s, &bounded, 60000);
	leave();
	assert_int_equal(ended, 1);
	assert_true(list_empty(&w->sessions));
	answer(cookie);
	work();
	assert_int_equal(answered, 0);
	assert_int_equal(freed, 1);
}

static void a_session_that_outlives_its_client_goes_with_the_answer(void **state)
{
	(void)state;
	say("NOOP\r\n");
	uint64_t cookie = wait_begin(s, &outliving, 0);
	leave();
	assert_false(list_empty(&w->sessions));
	assert_null(s->stream);
	answer(cookie);
	work();
	assert_int_equal(answered, 1);
	assert_true(list_empty(&w->sessions));
}

static void a_client_that_has_only_ended_its_side_is_answered(void **state)
{
	(void)state;
	uint64_t cookie = wait_begin(s, &bounded, 60000);
	shutdown(client, SHUT_WR);
	work();
	assert_int_equal(s->state, SESSION_WAIT);
	answer(cookie);
	assert_string_equal(heard(), "250 2.0.0 Ok\r\n");
	assert_true(list_empty(&w->sessions));
}

static void a_worker_that_closes_sits_out_no_pause(void **state)
{
	(void)state;
	struct note *note = mem_zalloc(sizeof *note);
	wait_begin(s, &pausing, 60000);
	note->type = SMTPD_WORKER_CLOSE;
	loop_post(w->loop, note);
	heard();
	assert_int_equal(expired, 1);
	say("NOOP\r\n");
	assert_string_equal(heard(), "");
}

static void a_worker_that_ends_leaves_nobody_waiting(void **state)
{
	(void)state;
	uint64_t cookie = wait_begin(s, &bounded, 60000);
	answer(cookie);
	smtpd_worker_end_sessions(w);
	assert_int_equal(ended, 1);
	assert_true(list_empty(&w->sessions));
	work();
	assert_int_equal(answered, 0);
	assert_int_equal(freed, 1);
}

static void every_state_of_a_transaction_can_wait_and_comes_back(void **state)
{
	static const enum session_state states[] = {SESSION_READY, SESSION_MAIL, SESSION_RCPT,
						    SESSION_CHUNK, SESSION_BDAT, SESSION_CHUNK,
						    SESSION_READY, SESSION_READY};
	(void)state;
	for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
		s->chunk_left = 5; /* still to come */
		session_move(s, states[i]);
		uint64_t cookie = wait_begin(s, &certain, 0);
		wait_answered(w, cookie, &cookie);
		assert_int_equal(s->state, states[i]);
	}
	assert_int_equal(answered, 8);
}

static void waits_of_many_are_told_apart(void **state)
{
	enum { MANY = 100 };
	union address peer = {.in = {.sin_family = AF_INET}};
	struct session *other[MANY];
	uint64_t cookie[MANY];
	int fd[MANY][2];
	(void)state;
	for (int i = 0; i < MANY; i++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd[i]), 0);
		open_session(fd[i][0], &peer);
		other[i] = list_entry(w->sessions.prev, struct session, link);
		cookie[i] = wait_begin(other[i], &certain, 0);
	}
	for (int i = MANY - 1; i >= 0; i -= 3) {
		s = other[i];
		wait_answered(w, cookie[i], &cookie[i]);
		assert_int_equal(other[i]->state, SESSION_GREETED);
	}
	for (int i = 0; i < MANY; i++) {
		s = other[i];
		wait_answered(w, cookie[i], &cookie[i]);
		assert_int_equal(other[i]->state, SESSION_GREETED);
	}
	assert_int_equal(answered, MANY);
	for (int i = 0; i < MANY; i++)
		close(fd[i][1]);
}

#define T(test) cmocka_unit_test_setup_teardown(test, start, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(an_answer_that_is_there_at_once_is_given),
		T(what_is_said_meanwhile_is_read_after_the_answer),
		T(an_answer_that_comes_late_does_nothing),
		T(a_second_answer_is_not_taken_for_that_of_the_next_wait),
		T(without_an_answer_the_deadline_ends_it),
		T(when_the_client_has_gone_the_answer_finds_nobody),
		T(a_session_that_outlives_its_client_goes_with_the_answer),
		T(a_client_that_has_only_ended_its_side_is_answered),
		T(a_worker_that_closes_sits_out_no_pause),
		T(a_worker_that_ends_leaves_nobody_waiting),
		T(every_state_of_a_transaction_can_wait_and_comes_back),
		T(waits_of_many_are_told_apart),
	};
	return RUN(tests);
}
