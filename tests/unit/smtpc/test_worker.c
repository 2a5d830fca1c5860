/* SPDX-License-Identifier: ISC */
#include "base/conf_value.h"
#include "tests/unit/smtpc/host.h"

#include "smtpc/smtpc.h"

#include <semaphore.h>

static struct conf *conf;
static struct conf_transport *transport;
static struct smtpc *smtpc;
static struct inbox inbox;
static struct host *host;
static int port;
static sem_t may_answer;

static int set_up(void **state)
{
	(void)state;
	conf = conf_defaults();
	conf_list_add(&conf->tls.groups,
		      "X25519"); /* what a large ClientHello costs is in test_hello_size.c */
	conf->workers = 1;
	transport = &conf->transport[0];
	transport->connection_idle_timeout = 60000;
	inbox_init(&inbox);
	smtpc = smtpc_new(conf);
	smtpc_start(smtpc);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	if (host)
		host_free(host);
	host = NULL;
	smtpc_stop(smtpc);
	smtpc_free(&smtpc);
	inbox_fini(&inbox);
	conf_unref(conf);
	return 0;
}

static void serve_with(void (*serve)(struct host *))
{
	host = host_new(serve);
	port = host->port;
}

static void open_connection(uint64_t number)
{
	union address to = {.in = {.sin_family = AF_INET,
				   .sin_port = htons((uint16_t)port),
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}};
	struct connection_open *o = connection_open_new(number, conf, transport, "host.test", &to);
	o->reply_to = inbox.loop;
	loop_post(smtpc_worker(smtpc, 0), &o->note);
}

static void give(uint64_t connection, size_t size)
{
	struct delivery *d = delivery_new(1);
	char *text = mem_alloc(size + 1);
	memset(text, 'x', size);
	d->connection = connection;
	d->reply_to = inbox.loop;
	d->sender = "s@test";
	d->rcpt[0].address = "r@test";
	d->content = content_in_memory(text, size);
	loop_post(smtpc_worker(smtpc, 0), &d->note);
}

static void post_close(uint64_t connection, bool leave)
{
	struct connection_close *c = mem_zalloc(sizeof *c);
	c->note.type = CONNECTION_CLOSE;
	c->connection = connection;
	c->leave = leave;
	loop_post(smtpc_worker(smtpc, 0), &c->note);
}

static void ask_to_close(uint64_t connection)
{
	post_close(connection, false);
}

static void ask_to_leave(uint64_t connection)
{
	post_close(connection, true);
}

static struct connection_ready ready(void)
{
	struct connection_ready *r = inbox_next(&inbox, CONNECTION_READY), copy = *r;
	free(r);
	return copy;
}

static void back(enum verdict_class class)
{
	struct delivery *d = inbox_next(&inbox, DELIVERY_BACK);
	assert_false(d->returned);
	assert_int_equal(d->rcpt[0].verdict->class, class);
	delivery_free(&d);
}

static void back_returned(void)
{
	struct delivery *d = inbox_next(&inbox, DELIVERY_BACK);
	assert_true(d->returned);
	assert_null(d->rcpt[0].verdict);
	delivery_free(&d);
}

/* NULL: orderly. */
static void closed(bool was_ready, const char *dsn)
{
	struct connection_open *o = inbox_next(&inbox, CONNECTION_CLOSED);
	assert_int_equal(o->was_ready, was_ready);
	if (dsn) {
		assert_non_null(o->why);
		assert_string_equal(o->why->dsn, dsn);
	} else {
		assert_null(o->why);
	}
	connection_open_free(&o);
}

static void serve_pipelined(struct host *h)
{
	host_greets(h, "250-host.test\r\n250 PIPELINING\r\n");
	while (host_hears(h, "\r\n")) {
		if (strncmp(h->heard, "QUIT", 4) == 0) {
			host_says(h, "221 bye\r\n");
			return;
		}
		bool data = strncmp(h->heard, "DATA", 4) == 0;
		host_says(h, data ? "354 go\r\n" : "250 ok\r\n");
		if (data && !host_hears(h, "\r\n.\r\n"))
			return;
		if (data)
			host_says(h, "250 2.0.0 kept\r\n");
	}
}

static void two_messages_share_a_connection(void **state)
{
	(void)state;
	serve_with(serve_pipelined);
	open_connection(1);
	struct connection_ready r = ready();
	assert_int_equal(r.depth, 2);
	assert_true(r.pipelining && !r.tls);
	give(1, 10);
	give(1, 10);
	back(VERDICT_SENT);
	back(VERDICT_SENT);
	ask_to_close(1);
	closed(true, NULL);
}

enum { ROUNDS = 10 }; /* connections, and then it is tired of them */

/* It puts each message off, in no words that are of the message alone, and takes one on a connection. */
static void serve_one_and_put_it_off(struct host *h)
{
	if (h->number > ROUNDS)
		return;
	host_greets(h, "250-host.test\r\n250 PIPELINING\r\n");
	for (int messages = 0; host_hears(h, "\r\n");) {
		bool data = strncmp(h->heard, "DATA", 4) == 0;
		messages += strncmp(h->heard, "MAIL", 4) == 0;
		if (messages > 1) {
			host_says(h, "421 enough\r\n");
			return;
		}
		host_says(h, data ? "354 go\r\n" : "250 ok\r\n");
		if (data && host_hears(h, "\r\n.\r\n"))
			host_says(h, "451 later\r\n");
	}
}

static void a_fresh_connection_brings_no_message_back_to_where_it_was(void **state)
{
	(void)state;
	serve_with(serve_one_and_put_it_off);
	open_connection(1);
	ready();
	give(1, 10);
	give(1, 10);
	back(VERDICT_DEFERRED);
	back(VERDICT_DEFERRED);
	ask_to_close(1);
	closed(true, NULL);
}

static void large_messages_flow(void **state)
{
	(void)state;
	serve_with(serve_pipelined);
	open_connection(1);
	ready();
	give(1, 20 << 20);
	give(1, 5 << 20);
	back(VERDICT_SENT);
	back(VERDICT_SENT);
	ask_to_close(1);
	closed(true, NULL);
}

static void idle_connections_are_closed(void **state)
{
	(void)state;
	transport->connection_idle_timeout = 20;
	serve_with(serve_pipelined);
	open_connection(1);
	ready();
	give(1, 10);
	back(VERDICT_SENT);
	closed(true, NULL);
	give(1, 10);
	back_returned();
}

static void a_connection_carries_its_number_of_messages(void **state)
{
	(void)state;
	transport->connection_max_messages = 2;
	serve_with(serve_pipelined);
	open_connection(1);
	ready();
	give(1, 10);
	give(1, 10);
	give(1, 10);
	back_returned();
	back(VERDICT_SENT);
	back(VERDICT_SENT);
	closed(true, NULL);
}

static void a_connection_has_its_age(void **state)
{
	(void)state;
	transport->connection_max_age = 50;
	serve_with(serve_pipelined);
	open_connection(1);
	ready();
	closed(true, NULL);
}

enum { AGE_MS = 2 };

static void serve_late(struct host *h)
{
	const struct timespec longer = {.tv_nsec = 5 * AGE_MS * 1000000};
	nanosleep(&longer, NULL);
	serve_pipelined(h);
}

static void one_that_is_older_than_that_when_it_is_ready_carries_a_message(void **state)
{
	(void)state;
	transport->connection_max_age = AGE_MS;
	serve_with(serve_late);
	open_connection(1);
	assert_true(ready().setup_ms > AGE_MS);
	give(1, 10);
	back(VERDICT_SENT);
	closed(true, NULL);
}

static void serve_tls(struct host *h)
{
	host_greets(h, "250-host.test\r\n250 STARTTLS\r\n");
	host_hears(h, "STARTTLS\r\n");
	host_says(h, "220 go\r\n");
	host_starts_tls(h);
	if (!host_hears(h, "EHLO"))
		return;
	host_hears(h, "\r\n");
	host_says(h, "250-host.test\r\n250 SIZE 1000\r\n");
	while (host_hears(h, "\r\n"))
		host_says(h, strncmp(h->heard, "QUIT", 4) == 0 ? "221 bye\r\n" : "250 ok\r\n");
}

static void tls_is_used_where_it_is_offered_and_resumed(void **state)
{
	(void)state;
	serve_with(serve_tls);
	for (uint64_t i = 1; i <= 2; i++) {
		open_connection(i);
		struct connection_ready r = ready();
		assert_true(r.tls);
		assert_int_equal(r.size_max, 1000);
		ask_to_close(i);
		closed(true, NULL);
	}
	assert_true(host->resumed);
}

static void serve_broken_tls(struct host *h)
{
	if (h->number > 1) {
		serve_pipelined(h);
		return;
	}
	host_greets(h, "250-host.test\r\n250 STARTTLS\r\n");
	host_hears(h, "STARTTLS\r\n");
	host_says(h, "220 go\r\n");
	host_byte(h); /* what comes with the 220 is an intrusion, not a failure */
	host_says(h, "no, I can't\r\n");
}

static void broken_tls_is_done_without(void **state)
{
	(void)state;
	serve_with(serve_broken_tls);
	open_connection(1);
	struct connection_ready r = ready();
	assert_false(r.tls);
	give(1, 10);
	back(VERDICT_SENT);
	ask_to_close(1);
	closed(true, NULL);
}

static void broken_tls_is_a_deferral_where_it_is_required(void **state)
{
	(void)state;
	free(transport->tls);
	transport->tls = mem_strdup("required");
	serve_with(serve_broken_tls);
	open_connection(1);
	closed(false, "4.7.5");
}

static void serve_421(struct host *h)
{
	host_says(h, "421 4.7.0 too many of you\r\n");
}

static void a_greeting_of_421_never_becomes_ready(void **state)
{
	(void)state;
	serve_with(serve_421);
	open_connection(1);
	closed(false, "4.7.0");
}

static void nobody_listening_is_a_failure(void **state)
{
	(void)state;
	serve_with(serve_421);
	host_free(host);
	host = NULL;
	open_connection(1);
	closed(false, "4.4.1");
}

static void serve_silence(struct host *h)
{
	host_hears(h, "never");
}

static void silence_is_a_failure(void **state)
{
	(void)state;
	transport->greeting_timeout = 50;
	serve_with(serve_silence);
	open_connection(1);
	closed(false, "4.4.2");
}

static void slow(enum connection_slowness how)
{
	bool found = false;
	while (!found) {
		struct connection_slow *s = inbox_next(&inbox, CONNECTION_SLOW);
		found = s->how == how;
		free(s);
	}
}

static void one_that_takes_the_connection_and_does_not_greet_is_slow_then_late(void **state)
{
	(void)state;
	transport->backup_attempt_delay = 20;
	transport->connect_timeout = 1000;
	serve_with(serve_silence);
	open_connection(1);
	slow(CONNECTION_BESIDE);
	slow(CONNECTION_LATE);
	ask_to_close(1);
	closed(false, NULL);
}

static void serve_until_the_dot(struct host *h)
{
	host_greets(h, "250-host.test\r\n250 PIPELINING\r\n");
	host_hears(h, "DATA\r\n");
	host_says(h, "250 ok\r\n250 ok\r\n354 go\r\n");
	host_hears(h, "\r\n.\r\n");
}

static void closing_after_the_dot_leaves_doubt(void **state)
{
	(void)state;
	serve_with(serve_until_the_dot);
	open_connection(1);
	ready();
	give(1, 10);
	back(VERDICT_IN_DOUBT);
	closed(true, "4.4.2");
}

static void serve_no_content(struct host *h)
{
	struct timespec wait = {.tv_nsec = 200000000};
	host_greets(h, "250-host.test\r\n250 PIPELINING\r\n");
	host_hears(h, "DATA\r\n");
	host_says(h, "250 ok\r\n250 ok\r\n354 go\r\n");
	nanosleep(&wait, NULL);
	if (transport->data_block_timeout > 1000)
		host_says(h, "552 5.3.4 too big\r\n");
	nanosleep(&wait, NULL);
}

static void a_host_that_takes_no_content_is_given_up(void **state)
{
	(void)state;
	transport->data_block_timeout = 100;
	serve_with(serve_no_content);
	open_connection(1);
	ready();
	give(1, 50 << 20);
	back_returned();
	closed(true, "4.4.2");
}

static void a_refusal_of_half_a_message_counts(void **state)
{
	(void)state;
	serve_with(serve_no_content);
	open_connection(1);
	ready();
	give(1, 50 << 20);
	back(VERDICT_FAILED);
	closed(true, NULL);
}

static void a_connection_may_be_closed_before_it_is_ready(void **state)
{
	(void)state;
	serve_with(serve_silence);
	open_connection(1);
	ask_to_close(1);
	closed(false, NULL);
	give(1, 10);
	back_returned();
}

static void serve_silence_at_mail(struct host *h)
{
	host_greets(h, "250-host.test\r\n250 PIPELINING\r\n");
	host_hears(h, "never");
}

static void one_that_does_not_answer_is_stalled_and_left(void **state)
{
	(void)state;
	serve_with(serve_silence_at_mail);
	open_connection(1);
	ready();
	give(1, 10);
	slow(CONNECTION_STALLED);
	ask_to_leave(1);
	back_returned();
	closed(true, "4.4.2");
}

/* A host that has answered before is not excused. */
static void serve_one_then_silence(struct host *h)
{
	host_greets(h, "250 host.test\r\n");
	host_hears(h, "\r\n");
	host_says(h, "250 ok\r\n");
	host_hears(h, "\r\n");
	host_says(h, "250 ok\r\n");
	host_hears(h, "DATA\r\n");
	host_says(h, "354 go\r\n");
	host_hears(h, "\r\n.\r\n");
	host_says(h, "250 2.0.0 kept\r\n");
	host_hears(h, "never");
}

static void one_that_has_served_before_is_so_too(void **state)
{
	(void)state;
	serve_with(serve_one_then_silence);
	open_connection(1);
	ready();
	give(1, 10);
	back(VERDICT_SENT);
	give(1, 10);
	slow(CONNECTION_STALLED);
	ask_to_leave(1);
	back_returned();
	closed(true, "4.4.2");
}

static void serve_late_answer(struct host *h)
{
	host_greets(h, "250-host.test\r\n250 PIPELINING\r\n");
	host_hears(h, "DATA\r\n");
	host_says(h, "250 ok\r\n250 ok\r\n354 go\r\n");
	host_hears(h, "\r\n.\r\n");
	sem_wait(&may_answer);
	host_says(h, "250 2.0.0 kept\r\n");
	host_hears(h, "QUIT\r\n");
	host_says(h, "221 bye\r\n");
}

static void what_a_host_has_all_of_is_waited_for(void **state)
{
	(void)state;
	sem_init(&may_answer, 0, 0);
	serve_with(serve_late_answer);
	open_connection(1);
	ready();
	give(1, 10);
	slow(CONNECTION_AWAITED);
	ask_to_leave(1);
	sem_post(&may_answer);
	back(VERDICT_SENT);
	slow(CONNECTION_MOVES);
	closed(true, NULL);
	sem_destroy(&may_answer);
}

static void stopping_drops_what_is_open(void **state)
{
	(void)state;
	serve_with(serve_until_the_dot);
	open_connection(1);
	ready();
	smtpc_stop(smtpc);
	closed(true, NULL);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(two_messages_share_a_connection),
		T(a_fresh_connection_brings_no_message_back_to_where_it_was),
		T(large_messages_flow),
		T(idle_connections_are_closed),
		T(a_connection_carries_its_number_of_messages),
		T(a_connection_has_its_age),
		T(one_that_is_older_than_that_when_it_is_ready_carries_a_message),
		T(tls_is_used_where_it_is_offered_and_resumed),
		T(broken_tls_is_done_without),
		T(broken_tls_is_a_deferral_where_it_is_required),
		T(a_greeting_of_421_never_becomes_ready),
		T(nobody_listening_is_a_failure),
		T(silence_is_a_failure),
		T(one_that_takes_the_connection_and_does_not_greet_is_slow_then_late),
		T(closing_after_the_dot_leaves_doubt),
		T(a_host_that_takes_no_content_is_given_up),
		T(a_refusal_of_half_a_message_counts),
		T(a_connection_may_be_closed_before_it_is_ready),
		T(one_that_does_not_answer_is_stalled_and_left),
		T(one_that_has_served_before_is_so_too),
		T(what_a_host_has_all_of_is_waited_for),
		T(stopping_drops_what_is_open),
	};
	return RUN(tests);
}
