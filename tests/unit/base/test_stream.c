/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "tests/unit/base/tlsrecord.h"

#include "base/address.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/stream.h"
#include "base/tls.h"

#include <netinet/tcp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One side of a connection: the stream, and what has happened to it. */
struct side {
	struct stream *stream;
	struct buf got;
	int count[STREAM_TIMEOUT + 1];
	size_t take_most; /* bytes consumed at one STREAM_DATA; 0: all */
	bool takes_nothing;
	bool frees_at[STREAM_TIMEOUT + 1];
	bool lingers;
	SSL_CTX *tls_after; /* start TLS as the server once this line has come */
};

static struct loop *l;
static struct side server, client;

static void receive(void *owner, struct note *n)
{
	(void)owner;
	(void)n;
}

static void take(struct side *s)
{
	struct buf *in = stream_in(s->stream);
	size_t len = buf_len(in);
	if (s->take_most && len > s->take_most)
		len = s->take_most;
	buf_append(&s->got, buf_data(in), len);
	buf_consume(in, len);
	if (s->tls_after && strcmp(buf_cstr(&s->got), "STARTTLS\r\n") == 0) {
		buf_puts(stream_out(s->stream), "220 go\r\n");
		stream_start_tls(s->stream, s->tls_after, true, NULL, NULL);
		s->tls_after = NULL;
	}
}

static void on_event(void *owner, enum stream_event event)
{
	struct side *s = owner;
	s->count[event]++;
	if (event == STREAM_DATA && !s->takes_nothing)
		take(s);
	if (s->frees_at[event] && s->lingers)
		stream_linger_close(&s->stream);
	else if (s->frees_at[event])
		stream_free(&s->stream);
}

static int listening(union address *at)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof *at;
	assert_true(address_parse("127.0.0.1", 0, at));
	assert_int_equal(bind(fd, &at->sa, address_size(at)), 0);
	assert_int_equal(listen(fd, 100), 0);
	assert_int_equal(getsockname(fd, &at->sa, &len), 0);
	return fd;
}

static void end_wait(void *owner)
{
	*(bool *)owner = true;
}

/* Run the loop until that is so, for half a minute at most. It never sleeps in there: what becomes so before it would sleep
 * need not be followed by an event. */
#define UNTIL(condition)                                                                           \
	do {                                                                                       \
		int64_t end_ms = clock_steady_ms() + 30000;                                        \
		while (!(condition) && clock_steady_ms() < end_ms) {                               \
			ev_run(l->ev, EVRUN_NOWAIT);                                               \
			usleep(100);                                                               \
		}                                                                                  \
		assert_true(condition);                                                            \
	} while (0)

static void run_for(int ms)
{
	bool late = false;
	struct timer limit;
	timer_init(&limit, end_wait, &late);
	timer_start(&l->timers, &limit, clock_steady_ms() + ms);
	while (!late)
		ev_run(l->ev, EVRUN_ONCE);
}

static int start(void **state)
{
	(void)state;
	l = loop_new("test", receive, NULL, NULL);
	memset(&server, 0, sizeof server);
	memset(&client, 0, sizeof client);
	union address at;
	int fd = listening(&at);
	client.stream = stream_connect(l, &at, NULL, on_event, &client);
	int accepted = accept4(fd, NULL, NULL, SOCK_NONBLOCK);
	close(fd);
	if (accepted < 0)
		return -1;
	server.stream = stream_accepted(l, accepted, on_event, &server);
	return 0;
}

static int end(void **state)
{
	(void)state;
	stream_free(&client.stream);
	stream_free(&server.stream);
	buf_fini(&client.got);
	buf_fini(&server.got);
	loop_free(&l);
	return 0;
}

static void say(struct side *s, const char *text)
{
	buf_puts(stream_out(s->stream), text);
	stream_flush(s->stream);
}

static bool has(struct side *s, const char *text)
{
	return strcmp(buf_cstr(&s->got), text) == 0;
}

static void who_is_accepted_does_not_gather_small_pieces_where_the_listener_does_not(void **state)
{
	(void)state;
	union address at;
	int nodelay = 0, listener = listening(&at), client_fd = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t size = sizeof nodelay;
	stream_nodelay(listener);
	assert_int_equal(connect(client_fd, &at.sa, address_size(&at)), 0);
	int accepted = accept(listener, NULL, NULL);
	assert_int_equal(getsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &nodelay, &size), 0);
	assert_true(nodelay);
	close(accepted);
	close(client_fd);
	close(listener);
}

static void bytes_come_over_both_ways(void **state)
{
	(void)state;
	char a[64];
	union address local;
	UNTIL(client.count[STREAM_CONNECTED] == 1);
	say(&client, "EHLO a\r\n");
	say(&server, "220 b\r\n");
	UNTIL(has(&server, "EHLO a\r\n") && has(&client, "220 b\r\n"));
	stream_local(server.stream, &local);
	assert_string_equal(address_text(&local, a), "127.0.0.1");
	assert_int_equal(server.count[STREAM_CONNECTED], 0);
	assert_null(stream_in(client.stream)->data); /* idle: no buffers */
	assert_null(stream_out(client.stream)->data);
}

static void a_refused_connection_is_an_error_from_the_loop(void **state)
{
	(void)state;
	struct side s = {0};
	union address at;
	close(listening(&at));
	s.stream = stream_connect(l, &at, NULL, on_event, &s);
	assert_int_equal(s.count[STREAM_ERROR], 0);
	UNTIL(s.count[STREAM_ERROR] == 1);
	assert_string_equal(stream_error(s.stream), "connect: Connection refused");
	stream_free(&s.stream);
}

static void an_impossible_source_address_is_an_error_from_the_loop(void **state)
{
	(void)state;
	struct side s = {0};
	union address to, from;
	assert_true(address_parse("127.0.0.1", 1, &to));
	assert_true(address_parse("192.0.2.1", 0, &from));
	s.stream = stream_connect(l, &to, &from, on_event, &s);
	s.frees_at[STREAM_ERROR] = true;
	UNTIL(s.count[STREAM_ERROR] == 1);
	assert_null(s.stream);
}

static void a_megabyte_goes_out_in_pieces_and_the_owner_hears_when_it_has(void **state)
{
	(void)state;
	enum { SIZE = 8 << 20 };
	char *big = mem_alloc(SIZE);
	for (int i = 0; i < SIZE; i++)
		big[i] = (char)(i * 7);
	buf_append(stream_out(client.stream), big, SIZE);
	UNTIL(client.count[STREAM_CONNECTED] == 1);
	stream_flush(client.stream);
	UNTIL(buf_len(&server.got) == SIZE && client.count[STREAM_DRAINED] == 1);
	assert_memory_equal(buf_data(&server.got), big, SIZE);
	free(big);
}

static void a_peer_can_t_make_the_input_grow(void **state)
{
	(void)state;
	char block[1000] = {0};
	server.takes_nothing = true;
	for (int i = 0; i < 200; i++)
		buf_append(stream_out(client.stream), block, sizeof block);
	stream_flush(client.stream);
	UNTIL(buf_len(stream_in(server.stream)) == STREAM_IN_MAX);
	run_for(50);
	assert_int_equal(buf_len(stream_in(server.stream)), STREAM_IN_MAX);
	server.takes_nothing = false;
	stream_resume(server.stream);
	UNTIL(buf_len(&server.got) == 200 * sizeof block);
}

static void a_paused_stream_reads_nothing_and_offers_the_rest_when_it_goes_on(void **state)
{
	(void)state;
	server.take_most = 2;
	say(&client, "abcd");
	UNTIL(has(&server, "ab"));
	stream_pause(server.stream);
	say(&client, "ef");
	run_for(50);
	assert_int_equal(server.count[STREAM_DATA], 1);
	server.take_most = 0;
	stream_resume(server.stream);
	assert_int_equal(server.count[STREAM_DATA], 1); /* from the loop, not from the call */
	UNTIL(has(&server, "abcdef"));
}

static void the_end_is_told_once_and_after_the_last_byte(void **state)
{
	(void)state;
	UNTIL(client.count[STREAM_CONNECTED] == 1);
	say(&client, "last");
	stream_free(&client.stream);
	UNTIL(server.count[STREAM_EOF] == 1);
	assert_true(has(&server, "last"));
	run_for(30);
	assert_int_equal(server.count[STREAM_EOF], 1);
	assert_int_equal(server.count[STREAM_ERROR], 0);
}

static void a_reset_is_an_error(void **state)
{
	(void)state;
	UNTIL(client.count[STREAM_CONNECTED] == 1);
	stream_pause(server.stream);
	say(&client, "never read");
	run_for(30);
	stream_free(&server.stream); /* unread bytes: the kernel answers with a reset */
	UNTIL(client.count[STREAM_ERROR] == 1);
	assert_non_null(strstr(stream_error(client.stream), "reset"));
}

static void the_callback_may_free_the_stream_at_any_event(void **state)
{
	(void)state;
	client.frees_at[STREAM_CONNECTED] = true;
	server.frees_at[STREAM_DATA] = true;
	buf_puts(stream_out(client.stream), "x");
	UNTIL(!client.stream);
	UNTIL(server.count[STREAM_EOF] + server.count[STREAM_DATA] > 0);
	stream_free(&server.stream);
	loop_free(&l);
	assert_int_equal(start(NULL), 0);
	server.frees_at[STREAM_DATA] = true;
	say(&client, "x");
	UNTIL(!server.stream);
	client.frees_at[STREAM_EOF] = client.frees_at[STREAM_ERROR] = true;
	UNTIL(!client.stream);
}

static void a_deadline_passes_once_and_can_be_stopped(void **state)
{
	(void)state;
	stream_deadline(server.stream, 20);
	UNTIL(server.count[STREAM_TIMEOUT] == 1);
	stream_deadline(server.stream, 20);
	stream_deadline(server.stream, 0);
	run_for(50);
	assert_int_equal(server.count[STREAM_TIMEOUT], 1);
	server.frees_at[STREAM_TIMEOUT] = true;
	stream_deadline(server.stream, 1);
	UNTIL(!server.stream);
}

static void the_last_reply_survives_what_the_peer_had_still_sent(void **state)
{
	(void)state;
	char block[4000] = {0};
	UNTIL(client.count[STREAM_CONNECTED] == 1);
	stream_pause(server.stream);
	for (int i = 0; i < 50; i++)
		buf_append(stream_out(client.stream), block, sizeof block);
	stream_flush(client.stream);
	run_for(20);
	buf_puts(stream_out(server.stream), "421 too much\r\n");
	stream_linger_close(&server.stream);
	assert_null(server.stream);
	UNTIL(client.count[STREAM_EOF] == 1);
	assert_true(has(&client, "421 too much\r\n"));
	assert_int_equal(client.count[STREAM_ERROR], 0);
	stream_free(&client.stream);
	run_for(50); /* and then the lingering side is gone: the sanitizer would see it */
}

static void lingering_may_begin_within_the_callback(void **state)
{
	(void)state;
	server.frees_at[STREAM_DATA] = server.lingers = true;
	buf_puts(stream_out(server.stream), "bye");
	say(&client, "hello");
	UNTIL(has(&client, "bye") && client.count[STREAM_EOF] == 1);
	assert_null(server.stream);
	stream_free(&client.stream);
	run_for(50);
}

/* The server has said so, and is gone, when the client writes twice, and only then reads. */
static void write_to_one_that_is_gone(void)
{
	stream_pause(client.stream);
	say(&server, "421 going down\r\n");
	stream_free(&server.stream);
	run_for(20);
	say(&client, "one\r\n"); /* is answered by a reset */
	run_for(20);
	stream_resume(client.stream);
	say(&client, "two\r\n");
	UNTIL(client.count[STREAM_ERROR] + client.count[STREAM_EOF] > 0);
	assert_true(has(&client, "421 going down\r\n"));
}

static void a_reply_sent_before_the_connection_broke_is_still_read(void **state)
{
	(void)state;
	UNTIL(client.count[STREAM_CONNECTED] == 1);
	write_to_one_that_is_gone();
}

static void say_soon(struct side *s, const char *text)
{
	buf_puts(stream_out(s->stream), text);
	stream_flush_soon(s->stream);
}

static void what_is_said_soon_goes_at_the_end_of_the_turn(void **state)
{
	(void)state;
	UNTIL(client.count[STREAM_CONNECTED] == 1);
	say_soon(&server, "250 a\r\n");
	say_soon(&server, "250 b\r\n");
	say_soon(&client, "MAIL\r\n");
	assert_int_equal(buf_len(stream_out(server.stream)), strlen("250 a\r\n250 b\r\n"));
	assert_int_equal(buf_len(stream_out(client.stream)), strlen("MAIL\r\n"));
	assert_false(stream_behind(server.stream));
	UNTIL(has(&client, "250 a\r\n250 b\r\n") && has(&server, "MAIL\r\n"));
	say_soon(&server, "250 c\r\n"); /* and in the next turn again */
	UNTIL(has(&client, "250 a\r\n250 b\r\n250 c\r\n"));
	assert_null(stream_out(server.stream)->data);
}

static void what_is_said_soon_goes_before_the_stream_does(void **state)
{
	(void)state;
	UNTIL(client.count[STREAM_CONNECTED] == 1);
	say_soon(&client, "QUIT\r\n");
	stream_free(&client.stream);
	say_soon(&server, "221 bye\r\n");
	UNTIL(has(&server, "QUIT\r\n") && server.count[STREAM_EOF] == 1);
	stream_close_quietly(&server.stream);
	run_for(10);
	assert_true(list_empty(&l->gathered));
}

static void what_is_said_soon_goes_before_a_stream_lingers(void **state)
{
	(void)state;
	UNTIL(client.count[STREAM_CONNECTED] == 1);
	say_soon(&server, "421 closing\r\n");
	stream_linger_close(&server.stream);
	UNTIL(has(&client, "421 closing\r\n") && client.count[STREAM_EOF] == 1);
}

static void what_is_said_soon_to_a_peer_that_has_gone_is_an_error(void **state)
{
	(void)state;
	UNTIL(client.count[STREAM_CONNECTED] == 1);
	say(&server, "220 a\r\n");
	run_for(10);
	client.takes_nothing = true;
	stream_pause(server.stream);
	stream_free(&client.stream);
	say(&server, "421 b\r\n"); /* is answered by a reset */
	run_for(10);
	say_soon(&server, "421 c\r\n");
	UNTIL(server.count[STREAM_ERROR] == 1);
	assert_true(list_empty(&l->gathered));
	say_soon(&server, "421 d\r\n");
	assert_true(list_empty(&l->gathered));
}

static void behind_what_the_peer_has_not_taken_nothing_waits_for_the_turn(void **state)
{
	(void)state;
	enum { SIZE = 8 << 20 };
	UNTIL(client.count[STREAM_CONNECTED] == 1);
	client.takes_nothing = true;
	for (int i = 0; i < SIZE; i++)
		buf_append(stream_out(server.stream), "x", 1);
	stream_flush_soon(server.stream); /* much: at once */
	assert_true(buf_len(stream_out(server.stream)) < SIZE);
	run_for(20);
	assert_true(stream_behind(server.stream));
	say_soon(&server, "end\r\n");
	assert_true(list_empty(&l->gathered));
	client.takes_nothing = false;
	stream_resume(client.stream);
	UNTIL(buf_len(&client.got) == SIZE + strlen("end\r\n"));
	assert_string_equal(buf_cstr(&client.got) + SIZE, "end\r\n");
	assert_false(stream_behind(server.stream));
}

static char certificate[64], key[64];
static SSL_CTX *server_tls, *client_tls;

static int make_certificate(void **state)
{
	(void)state;
	EVP_PKEY *pair = EVP_EC_gen("P-256");
	X509 *x = X509_new();
	X509_set_version(x, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
	X509_gmtime_adj(X509_getm_notBefore(x), 0);
	X509_gmtime_adj(X509_getm_notAfter(x), 3600);
	X509_set_pubkey(x, pair);
	X509_NAME *name = X509_get_subject_name(x);
	X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"test", -1, -1,
				   0);
	X509_set_issuer_name(x, name);
	X509_sign(x, pair, EVP_sha256());
	snprintf(certificate, sizeof certificate, "/tmp/test_stream.%d.pem", (int)getpid());
	snprintf(key, sizeof key, "/tmp/test_stream.%d.key", (int)getpid());
	FILE *f = fopen(certificate, "w");
	PEM_write_X509(f, x);
	fclose(f);
	f = fopen(key, "w");
	PEM_write_PrivateKey(f, pair, NULL, NULL, 0, NULL, NULL);
	fclose(f);
	X509_free(x);
	EVP_PKEY_free(pair);
	struct buf error = {0};
	server_tls = tls_server_context(certificate, key, false, NULL, &error);
	client_tls = tls_client_context();
	SSL_CTX_set_keylog_callback(client_tls, tlsrecord_keylog);
	buf_fini(&error);
	return server_tls && client_tls ? 0 : -1;
}

static int forget_certificate(void **state)
{
	(void)state;
	unlink(certificate);
	unlink(key);
	SSL_CTX_free(server_tls);
	SSL_CTX_free(client_tls);
	return 0;
}

static void shake_hands(SSL_SESSION *resume)
{
	server.tls_after = server_tls;
	say(&client, "STARTTLS\r\n");
	UNTIL(has(&client, "220 go\r\n"));
	buf_clear(&client.got);
	buf_clear(&server.got);
	stream_start_tls(client.stream, client_tls, false, "mx.example.com", resume);
	UNTIL(client.count[STREAM_TLS] == 1 && server.count[STREAM_TLS] == 1);
}

static void after_starttls_all_goes_encrypted_both_ways(void **state)
{
	(void)state;
	enum { SIZE = 3 << 20 };
	shake_hands(NULL);
	assert_string_equal(
		SSL_get_servername(stream_ssl(server.stream), TLSEXT_NAMETYPE_host_name),
		"mx.example.com");
	char *big = mem_alloc(SIZE);
	for (int i = 0; i < SIZE; i++)
		big[i] = (char)(i * 11);
	buf_append(stream_out(client.stream), big, SIZE);
	buf_append(stream_out(server.stream), big, SIZE);
	stream_flush(client.stream);
	stream_flush(server.stream);
	UNTIL(buf_len(&server.got) == SIZE && buf_len(&client.got) == SIZE);
	assert_memory_equal(buf_data(&server.got), big, SIZE);
	assert_memory_equal(buf_data(&client.got), big, SIZE);
	free(big);
	stream_free(&client.stream);
	UNTIL(server.count[STREAM_EOF] == 1);
	assert_int_equal(server.count[STREAM_ERROR], 0);
}

static void so_is_one_under_tls(void **state)
{
	(void)state;
	shake_hands(NULL);
	say(&server, "250 a\r\n"); /* the tickets come before it */
	UNTIL(has(&client, "250 a\r\n"));
	buf_clear(&client.got);
	write_to_one_that_is_gone();
	run_for(20);
	assert_int_equal(client.count[STREAM_ERROR] + client.count[STREAM_EOF], 1);
}

static void what_openssl_holds_is_offered_when_a_paused_stream_goes_on(void **state)
{
	(void)state;
	char block[10000] = {0};
	shake_hands(NULL);
	server.takes_nothing = true;
	for (int i = 0; i < 10; i++)
		buf_append(stream_out(client.stream), block, sizeof block);
	stream_flush(client.stream);
	UNTIL(buf_len(stream_in(server.stream)) == STREAM_IN_MAX);
	stream_pause(server.stream);
	run_for(30);
	server.takes_nothing = false;
	stream_resume(server.stream);
	UNTIL(buf_len(&server.got) == 10 * sizeof block);
}

static void what_is_said_soon_goes_in_clear_before_tls_begins(void **state)
{
	(void)state;
	UNTIL(client.count[STREAM_CONNECTED] == 1);
	say_soon(&server, "220 go\r\n");
	stream_start_tls(server.stream, server_tls, true, NULL, NULL);
	UNTIL(has(&client, "220 go\r\n"));
	stream_start_tls(client.stream, client_tls, false, NULL, NULL);
	UNTIL(client.count[STREAM_TLS] == 1 && server.count[STREAM_TLS] == 1);
	say_soon(&client, "EHLO a\r\n");
	assert_int_equal(buf_len(&server.got), 0);
	UNTIL(has(&server, "EHLO a\r\n"));
}

static void a_session_can_be_resumed(void **state)
{
	(void)state;
	shake_hands(NULL);
	say(&server, "250 a\r\n"); /* the tickets come before it */
	UNTIL(has(&client, "250 a\r\n"));
	SSL_SESSION *session = SSL_get1_session(stream_ssl(client.stream));
	assert_non_null(session);
	stream_free(&client.stream);
	stream_free(&server.stream);
	buf_fini(&client.got);
	buf_fini(&server.got);
	loop_free(&l);
	assert_int_equal(start(NULL), 0);
	shake_hands(session);
	assert_true(SSL_session_reused(stream_ssl(client.stream)));
	SSL_SESSION_free(session);
}

static void nonsense_in_place_of_a_handshake_is_an_error(void **state)
{
	(void)state;
	stream_start_tls(server.stream, server_tls, true, NULL, NULL);
	say(&client, "EHLO this is no hello of TLS\r\n");
	UNTIL(server.count[STREAM_ERROR] == 1);
	assert_int_equal(strncmp(stream_error(server.stream), "TLS: ", 5), 0);
	assert_int_equal(server.count[STREAM_DATA], 0);
}

static void a_peer_that_ends_during_the_handshake_is_an_error(void **state)
{
	(void)state;
	UNTIL(client.count[STREAM_CONNECTED] == 1);
	stream_start_tls(server.stream, server_tls, true, NULL, NULL);
	run_for(10);
	stream_free(&client.stream);
	UNTIL(server.count[STREAM_ERROR] == 1);
}

static void the_callback_may_free_a_stream_when_its_handshake_is_done(void **state)
{
	(void)state;
	server.frees_at[STREAM_TLS] = true;
	stream_start_tls(server.stream, server_tls, true, NULL, NULL);
	UNTIL(client.count[STREAM_CONNECTED] == 1);
	stream_start_tls(client.stream, client_tls, false, NULL, NULL);
	UNTIL(!server.stream);
	UNTIL(client.count[STREAM_EOF] + client.count[STREAM_ERROR] > 0);
}

/* The beginning of a message that may come after the handshake, and plain text behind it; the side
 * that gets them says something itself meanwhile. */
static void begin_a_message_and_go_on_in_clear(struct side *from, struct side *to,
					       const unsigned char *secret, const void *begun,
					       size_t size)
{
	static const char clear[] = "MAIL FROM:<mallory@example.com>\r\n";
	unsigned char record[TLSRECORD_MOST];
	char heard[4096];
	assert_string_equal(SSL_get_cipher_name(stream_ssl(from->stream)),
			    "TLS_AES_256_GCM_SHA384");
	int fd = SSL_get_fd(stream_ssl(from->stream));
	size_t n = tlsrecord_make(secret, 0, SSL3_RT_HANDSHAKE, begun, size, record);
	stream_pause(from->stream);
	assert_int_equal(send(fd, record, n, 0), (ssize_t)n);
	run_for(20);
	assert_int_equal(to->count[STREAM_ERROR], 0);
	assert_true(stream_quiet(to->stream));
	say(to, "250 in confidence\r\n");
	run_for(20);
	ssize_t got = recv(fd, heard, sizeof heard, MSG_DONTWAIT);
	assert_null(got > 0 ? memmem(heard, (size_t)got, "in confidence", 13) : NULL);
	assert_int_equal(send(fd, clear, sizeof clear - 1, 0), sizeof clear - 1);
	UNTIL(to->count[STREAM_ERROR] == 1);
	assert_int_equal(buf_len(&to->got), 0);
}

static void a_client_s_unfinished_key_update_does_not_end_tls(void **state)
{
	static const unsigned char key_update[] = {24, 0, 0, 1};
	(void)state;
	shake_hands(NULL);
	begin_a_message_and_go_on_in_clear(&client, &server, tlsrecord_secrets.client, key_update,
					   sizeof key_update);
}

static void a_server_s_unfinished_ticket_does_not_end_tls(void **state)
{
	static const unsigned char ticket[] = {4, 0, 0, 60, 0, 0};
	(void)state;
	SSL_CTX_set_num_tickets(server_tls, 0);
	shake_hands(NULL);
	SSL_CTX_set_num_tickets(server_tls, 2);
	begin_a_message_and_go_on_in_clear(&server, &client, tlsrecord_secrets.server, ticket,
					   sizeof ticket);
}

/* Records that hold nothing cost the peer little, and must cost us no more than a few of them. */
static void empty_records_without_end_are_an_error(void **state)
{
	enum { MANY = 2000, FEW = 100 };
	unsigned char record[TLSRECORD_MOST];
	(void)state;
	shake_hands(NULL);
	stream_pause(client.stream);
	int fd = SSL_get_fd(stream_ssl(client.stream));
	uint64_t sent = 0;
	while (sent < MANY && server.count[STREAM_ERROR] == 0) {
		size_t n = tlsrecord_make(tlsrecord_secrets.client, sent++,
					  SSL3_RT_APPLICATION_DATA, NULL, 0, record);
		if (send(fd, record, n, MSG_NOSIGNAL) != (ssize_t)n)
			break;
		ev_run(l->ev, EVRUN_NOWAIT);
	}
	UNTIL(server.count[STREAM_ERROR] == 1);
	assert_true(sent < FEW);
	assert_int_equal(buf_len(&server.got), 0);
}

/* Records that OpenSSL has made of key updates, so many as the other side takes; returns how many. */
static int update_keys(struct side *from, const struct side *to, int most)
{
	SSL *ssl = stream_ssl(from->stream);
	int sent = 0;
	while (sent < most && to->count[STREAM_ERROR] == 0) {
		assert_int_equal(SSL_key_update(ssl, SSL_KEY_UPDATE_NOT_REQUESTED), 1);
		if (SSL_do_handshake(ssl) != 1)
			break;
		sent++;
		/* They lie in the socket, a hundred kilobytes of them, before the other side looks. */
		if (sent % 4000 == 0)
			ev_run(l->ev, EVRUN_NOWAIT);
	}
	return sent;
}

static void key_updates_without_end_are_an_error(struct side *from, struct side *to)
{
	enum { MANY = 4000 };
	shake_hands(NULL);
	stream_pause(from->stream);
	int sent = update_keys(from, to, MANY);
	assert_in_range(sent, 10 * STREAM_IDLE_RECORDS, MANY);
	UNTIL(to->count[STREAM_ERROR] == 1);
	assert_string_equal(stream_error(to->stream), "TLS: too many records that hold no data");
}

static void a_client_s_key_updates_without_end_are_an_error(void **state)
{
	(void)state;
	key_updates_without_end_are_an_error(&client, &server);
}

static void a_server_s_key_updates_without_end_are_an_error(void **state)
{
	(void)state;
	key_updates_without_end_are_an_error(&server, &client);
}

/* As many as a peer may have reason for; and what is said behind them. */
static void some_key_updates_are_none(void **state)
{
	(void)state;
	shake_hands(NULL);
	for (int i = 0; i < STREAM_IDLE_RECORDS / 2; i++) {
		assert_int_equal(update_keys(&client, &server, 1), 1);
		say(&client, "a");
		UNTIL(buf_len(&server.got) == (size_t)i + 1);
	}
	assert_int_equal(server.count[STREAM_ERROR], 0);
}

static void a_wrong_key_is_said(void **state)
{
	(void)state;
	struct buf error = {0};
	assert_null(tls_server_context(certificate, "/nowhere.key", false, NULL, &error));
	assert_non_null(strstr(buf_cstr(&error), "key /nowhere.key: No such file"));
	buf_fini(&error);
}

static void quiet_is_who_has_said_nothing_that_is_not_known(void **state)
{
	(void)state;
	say(&client, "a");
	UNTIL(has(&server, "a"));
	assert_true(stream_quiet(server.stream));
	say(&client, "b"); /* the loop does not run: it lies in the socket */
	assert_false(stream_quiet(server.stream));
	UNTIL(has(&server, "ab"));
	assert_true(stream_quiet(server.stream));
	stream_free(&client.stream);
	assert_false(stream_quiet(server.stream));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end)

int main(void)
{
	const struct CMUnitTest plain[] = {
		cmocka_unit_test(
			who_is_accepted_does_not_gather_small_pieces_where_the_listener_does_not),
		TEST(bytes_come_over_both_ways),
		TEST(a_refused_connection_is_an_error_from_the_loop),
		TEST(an_impossible_source_address_is_an_error_from_the_loop),
		TEST(a_megabyte_goes_out_in_pieces_and_the_owner_hears_when_it_has),
		TEST(a_peer_can_t_make_the_input_grow),
		TEST(a_paused_stream_reads_nothing_and_offers_the_rest_when_it_goes_on),
		TEST(the_end_is_told_once_and_after_the_last_byte),
		TEST(a_reset_is_an_error),
		TEST(the_callback_may_free_the_stream_at_any_event),
		TEST(a_deadline_passes_once_and_can_be_stopped),
		TEST(the_last_reply_survives_what_the_peer_had_still_sent),
		TEST(lingering_may_begin_within_the_callback),
		TEST(a_reply_sent_before_the_connection_broke_is_still_read),
		TEST(quiet_is_who_has_said_nothing_that_is_not_known),
		TEST(what_is_said_soon_goes_at_the_end_of_the_turn),
		TEST(what_is_said_soon_goes_before_the_stream_does),
		TEST(what_is_said_soon_goes_before_a_stream_lingers),
		TEST(what_is_said_soon_to_a_peer_that_has_gone_is_an_error),
		TEST(behind_what_the_peer_has_not_taken_nothing_waits_for_the_turn),
	};
	const struct CMUnitTest tls[] = {
		TEST(after_starttls_all_goes_encrypted_both_ways),
		TEST(so_is_one_under_tls),
		TEST(what_openssl_holds_is_offered_when_a_paused_stream_goes_on),
		TEST(what_is_said_soon_goes_in_clear_before_tls_begins),
		TEST(a_session_can_be_resumed),
		TEST(nonsense_in_place_of_a_handshake_is_an_error),
		TEST(a_peer_that_ends_during_the_handshake_is_an_error),
		TEST(the_callback_may_free_a_stream_when_its_handshake_is_done),
		TEST(a_client_s_unfinished_key_update_does_not_end_tls),
		TEST(a_server_s_unfinished_ticket_does_not_end_tls),
		TEST(empty_records_without_end_are_an_error),
		TEST(a_client_s_key_updates_without_end_are_an_error),
		TEST(a_server_s_key_updates_without_end_are_an_error),
		TEST(some_key_updates_are_none),
		cmocka_unit_test(a_wrong_key_is_said),
	};
	signal(SIGPIPE, SIG_IGN);
	int failed = RUN(plain);
	return failed + cmocka_run_group_tests(tls, make_certificate, forget_certificate);
}
