/* SPDX-License-Identifier: ISC */
/* Hosts that choke on a ClientHello of two segments: what they get next, and what qmgr is told. */
#include "tests/unit/smtpc/host.h"

#include "base/conf_value.h"
#include "base/tls_groups.h"
#include "smtpc/smtpc.h"

enum { ROOM = 1400, TICKET = 1500 };

static struct conf *conf;
static struct conf_transport *transport;
static struct smtpc *smtpc;
static struct inbox inbox;
static struct host *host;
static atomic_int large, small, plain; /* ClientHellos, and sessions in the clear */
static atomic_int room;		       /* for a ClientHello */
static bool hangs;		       /* or it resets the connection */

static void choke(struct host *h)
{
	char bytes[4096];
	struct linger at_once = {.l_onoff = 1};
	if (hangs)
		while (recv(h->fd, bytes, sizeof bytes, 0) > 0)
			;
	else
		setsockopt(h->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

/* With its record, which is left where it is; 0: there is none. */
static size_t hello_size(struct host *h)
{
	unsigned char head[5];
	if (recv(h->fd, head, sizeof head, MSG_PEEK | MSG_WAITALL) != sizeof head)
		return 0;
	return sizeof head + (size_t)(head[3] << 8 | head[4]);
}

static void converse(struct host *h)
{
	while (host_hears(h, "\r\n")) {
		bool quit = strncmp(h->heard, "QUIT", 4) == 0;
		host_says(h, quit ? "221 bye\r\n" : "250 ok\r\n");
		if (quit)
			return;
	}
}

static void serve_narrow(struct host *h)
{
	host_greets(h, "250-host.test\r\n250 STARTTLS\r\n");
	if (!host_hears(h, "\r\n") || strncmp(h->heard, "STARTTLS", 8) != 0) {
		plain++;
		return;
	}
	host_says(h, "220 go\r\n");
	size_t size = hello_size(h);
	*(size > ROOM ? &large : &small) += size > 0;
	if (size > (size_t)room) {
		choke(h);
		return;
	}
	host_starts_tls(h);
	converse(h);
}

static int fill_ticket(SSL *ssl, void *unused)
{
	static const char filling[TICKET];
	(void)unused;
	return SSL_SESSION_set1_ticket_appdata(SSL_get_session(ssl), filling, sizeof filling);
}

static SSL_TICKET_RETURN take_ticket(SSL *ssl, SSL_SESSION *session, const unsigned char *name,
				     size_t len, SSL_TICKET_STATUS status, void *unused)
{
	(void)ssl;
	(void)session;
	(void)name;
	(void)len;
	(void)unused;
	bool good = status == SSL_TICKET_SUCCESS || status == SSL_TICKET_SUCCESS_RENEW;
	return good ? SSL_TICKET_RETURN_USE_RENEW : SSL_TICKET_RETURN_IGNORE_RENEW;
}

static int set_up(void **state)
{
	(void)state;
	conf = conf_defaults();
	conf->workers = 1;
	transport = &conf->transport[0];
	transport->connection_idle_timeout = 60000;
	transport->starttls_timeout = 3000;
	inbox_init(&inbox);
	smtpc = smtpc_new(conf);
	smtpc_start(smtpc);
	large = small = plain = 0;
	room = ROOM;
	hangs = false;
	host = host_new(serve_narrow);
	SSL_CTX_set_session_ticket_cb(host->context, fill_ticket, take_ticket, NULL);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	smtpc_stop(smtpc);
	host_free(host);
	smtpc_free(&smtpc);
	inbox_fini(&inbox);
	conf_unref(conf);
	return 0;
}

static void demand(const char *tls)
{
	free(transport->tls);
	transport->tls = mem_strdup(tls);
}

static void open_in(enum connection_mode mode)
{
	static uint64_t number;
	union address to = {.in = {.sin_family = AF_INET,
				   .sin_port = htons((uint16_t)host->port),
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}};
	struct connection_open *o =
		connection_open_new(++number, conf, transport, "host.test", &to);
	o->reply_to = inbox.loop;
	o->mode = mode;
	loop_post(smtpc_worker(smtpc, 0), &o->note);
}

/* The next note of this type; that a host is slow is passed over. */
static void *next(int type)
{
	struct note *note;
	while ((note = inbox_any(&inbox))->type == CONNECTION_SLOW)
		free(note);
	assert_int_equal(note->type, type);
	return note;
}

/* Whether it has TLS, and qmgr is told that the host chokes. */
static void becomes_ready(bool tls, bool choked)
{
	struct connection_ready *r = next(CONNECTION_READY);
	struct connection_close *c = mem_zalloc(sizeof *c);
	assert_int_equal(r->tls, tls);
	assert_int_equal(r->tls_broken, !tls);
	assert_int_equal(r->choked != NULL, choked);
	if (choked)
		assert_non_null(strstr(r->choked->text, "after a ClientHello of "));
	verdict_unref(r->choked);
	c->note.type = CONNECTION_CLOSE;
	c->connection = r->connection;
	loop_post(smtpc_worker(smtpc, 0), &c->note);
	free(r);
}

static void closes(const char *dsn, bool choked)
{
	struct connection_open *o = next(CONNECTION_CLOSED);
	assert_int_equal(o->why != NULL, dsn != NULL);
	if (dsn)
		assert_string_equal(o->why->dsn, dsn);
	assert_int_equal(o->choked != NULL, choked);
	connection_open_free(&o);
}

static void opens(enum connection_mode mode, bool tls, bool choked)
{
	open_in(mode);
	becomes_ready(tls, choked);
	closes(NULL, false);
}

/* The next ClientHello has a large ticket, and no hybrid group. */
static void get_large_ticket(void)
{
	conf_list_add(&conf->tls.groups, "X25519");
	opens(CONNECTION_FULL, true, false);
	assert_int_equal(small, 1);
	assert_int_equal(large, 0);
}

static void a_large_ticket_is_left_out_where_the_host_resets(void **state)
{
	(void)state;
	get_large_ticket();
	opens(CONNECTION_FULL, true, true);
	assert_int_equal(large, 1);
	assert_int_equal(small, 2);
	assert_int_equal(plain, 0);
	assert_false(host->resumed);
}

static void a_large_ticket_is_left_out_where_the_host_says_nothing(void **state)
{
	(void)state;
	hangs = true;
	get_large_ticket();
	opens(CONNECTION_FULL, true, true);
	assert_int_equal(large, 1);
	assert_int_equal(small, 2);
	assert_int_equal(plain, 0);
}

static void a_large_ticket_is_sent_where_there_is_room(void **state)
{
	(void)state;
	room = 1 << 16;
	get_large_ticket();
	opens(CONNECTION_FULL, true, false);
	assert_int_equal(large, 1);
	assert_int_equal(small, 1);
	assert_true(host->resumed);
}

static void a_host_that_is_known_to_choke_gets_a_small_hello_at_once(void **state)
{
	(void)state;
	get_large_ticket();
	opens(CONNECTION_SMALL_HELLO, true, false);
	assert_int_equal(large, 0);
	assert_int_equal(small, 2);
}

static void what_breaks_a_small_hello_too_is_done_without(void **state)
{
	(void)state;
	get_large_ticket();
	room = 0;
	opens(CONNECTION_FULL, false, false);
	assert_int_equal(large, 1);
	assert_int_equal(small, 2);
	assert_int_equal(plain, 1);
}

static void what_breaks_a_small_hello_too_is_a_deferral_where_tls_is_required(void **state)
{
	(void)state;
	demand("required");
	get_large_ticket();
	room = 0;
	open_in(CONNECTION_FULL);
	closes("4.7.5", false);
	assert_int_equal(large, 1);
	assert_int_equal(small, 2);
	assert_int_equal(plain, 0);
}

static void a_small_hello_that_fails_has_no_second(void **state)
{
	(void)state;
	conf_list_add(&conf->tls.groups, "X25519");
	room = 0;
	opens(CONNECTION_FULL, false, false);
	assert_int_equal(small, 1);
	assert_int_equal(plain, 1);
}

static void skip_without_hybrids(void)
{
	if (!tls_groups_can_be_classical(NULL))
		skip(); /* OpenSSL before 3.5 */
}

static void hybrids_are_left_out_where_the_host_chokes(void **state)
{
	(void)state;
	skip_without_hybrids();
	for (int i = 1; i <= 2; i++, hangs = true) {
		opens(CONNECTION_FULL, true, true);
		assert_int_equal(large, i);
		assert_int_equal(small, i);
	}
	opens(CONNECTION_SMALL_HELLO, true, false);
	assert_int_equal(large, 2);
	assert_int_equal(plain, 0);
}

static void that_it_chokes_is_told_though_its_certificate_is_no_good(void **state)
{
	(void)state;
	skip_without_hybrids();
	demand("verify");
	open_in(CONNECTION_FULL);
	closes("4.7.5", true);
	assert_int_equal(large, 1);
	assert_int_equal(small, 1);
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN); /* as in the program */
#define T(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(a_large_ticket_is_left_out_where_the_host_resets),
		T(a_large_ticket_is_left_out_where_the_host_says_nothing),
		T(a_large_ticket_is_sent_where_there_is_room),
		T(a_host_that_is_known_to_choke_gets_a_small_hello_at_once),
		T(what_breaks_a_small_hello_too_is_done_without),
		T(what_breaks_a_small_hello_too_is_a_deferral_where_tls_is_required),
		T(a_small_hello_that_fails_has_no_second),
		T(hybrids_are_left_out_where_the_host_chokes),
		T(that_it_chokes_is_told_though_its_certificate_is_no_good),
	};
	return RUN(tests);
}
