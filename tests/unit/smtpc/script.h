/* script.h - conversations with an engine, written as what the host says and what it hears.
 *
 *	says("250 ok\r\n")	fed to the engine, whole or byte by byte (script_piece)
 *	hears("MAIL ...\r\n")	all that the engine has put out since, which is thereby sent
 */
#ifndef TESTS_UNIT_SMTPC_SCRIPT_H
#define TESTS_UNIT_SMTPC_SCRIPT_H

#include "tests/unit/base/unit.h"

#include "base/mem.h"
#include "smtpc/engine.h"

#include <stdlib.h>
#include <string.h>

static struct engine engine;
static struct conf_transport transport;
static struct buf out;
static size_t script_piece = 1 << 20;
static struct delivery *taken;
static enum connection_mode mode;
static bool requiretls;
static const struct engine_login *login; /* as whom; NULL: as nobody */

static void open_with(enum transport_tls tls)
{
	memset(&transport, 0, sizeof transport);
	transport.pipeline_depth = 16;
	transport.connection_idle_timeout = 1;
	transport.greeting_timeout = 2;
	transport.helo_timeout = 3;
	transport.starttls_timeout = 4;
	transport.mail_timeout = 5;
	transport.rcpt_timeout = 6;
	transport.data_init_timeout = 7;
	transport.data_block_timeout = 8;
	transport.data_done_timeout = 9;
	transport.rset_timeout = 10;
	transport.quit_timeout = 11;
	struct engine_setup setup = {.hostname = "me.test",
				     .peer = "mx.test[192.0.2.1]:25",
				     .transport = &transport,
				     .tls = tls,
				     .mode = mode,
				     .requiretls = requiretls,
				     .login = login};
	buf_init(&out);
	engine_init(&engine, &setup, &out);
}

static int set_up(void **state)
{
	(void)state;
	mode = CONNECTION_FULL;
	open_with(TRANSPORT_TLS_NONE);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	struct delivery *d;
	delivery_free(&taken);
	if (engine.state != ENGINE_CLOSED)
		engine_drop(&engine);
	while ((d = engine_take(&engine)))
		delivery_free(&d);
	engine_fini(&engine);
	buf_fini(&out);
	return 0;
}

static inline void says(const char *text)
{
	struct buf in;
	size_t len = strlen(text);
	buf_init(&in);
	for (size_t at = 0; at < len && engine.state != ENGINE_CLOSED; at += script_piece) {
		buf_append(&in, text + at, len - at < script_piece ? len - at : script_piece);
		engine_input(&engine, &in);
	}
	buf_fini(&in);
}

static inline void hears(const char *expected)
{
	assert_string_equal(buf_cstr(&out), expected);
	buf_clear(&out);
}

/* The network takes whatever there is. */
static inline void sent(void)
{
	buf_clear(&out);
}

static inline struct delivery *mail(const char *text, const char *const *to)
{
	uint32_t n = 0;
	while (to[n])
		n++;
	struct delivery *d = delivery_new(n);
	d->sender = "s@test";
	d->content = content_in_memory(mem_strdup(text), strlen(text));
	for (uint32_t i = 0; i < n; i++)
		d->rcpt[i].address = to[i];
	return d;
}

#define TO(...) ((const char *const[]){__VA_ARGS__, NULL})

static inline void give(struct delivery *d)
{
	engine_give(&engine, d);
}

/* The next delivery that is back. */
static inline struct delivery *back(void)
{
	delivery_free(&taken);
	taken = engine_take(&engine);
	assert_non_null(taken);
	return taken;
}

static inline void assert_nothing_back(void)
{
	assert_null(engine.done.first);
}

static inline void assert_verdict(const struct delivery *d, uint32_t i, enum verdict_class class,
				  int code)
{
	assert_false(d->returned);
	assert_non_null(d->rcpt[i].verdict);
	assert_int_equal(d->rcpt[i].verdict->class, class);
	assert_int_equal(d->rcpt[i].verdict->code, code);
}

static inline void assert_returned(const struct delivery *d)
{
	assert_true(d->returned);
	for (uint32_t i = 0; i < d->nrcpt; i++)
		assert_null(d->rcpt[i].verdict);
}

static inline void assert_closed(int code, const char *dsn)
{
	assert_int_equal(engine.state, ENGINE_CLOSED);
	assert_non_null(engine.why);
	assert_int_equal(engine.why->class, VERDICT_DEFERRED);
	assert_int_equal(engine.why->code, code);
	assert_string_equal(engine.why->dsn, dsn);
}

static inline void assert_closed_orderly(void)
{
	assert_int_equal(engine.state, ENGINE_CLOSED);
	assert_null(engine.why);
}

static inline void greet(const char *ehlo)
{
	says("220 mx.test\r\n");
	hears("EHLO me.test\r\n");
	says(ehlo);
	assert_int_equal(engine.state, ENGINE_READY);
	hears("");
}

#define PLAIN "250 mx.test\r\n"
#define PIPELINED "250-mx.test\r\n250 PIPELINING\r\n"
#define CHUNKED "250-mx.test\r\n250-PIPELINING\r\n250 CHUNKING\r\n"

/* A message whose content may go before its envelope is answered. */
static inline struct delivery *ahead(struct delivery *d)
{
	d->ahead = true;
	return d;
}

/* A message carried to its end, on a host that pipelines. */
static inline void carry_one(void)
{
	give(mail("x\r\n", TO("a@test")));
	hears("MAIL FROM:<s@test>\r\nRCPT TO:<a@test>\r\nDATA\r\n");
	says("250 ok\r\n250 ok\r\n354 go\r\n");
	hears("x\r\n.\r\n");
	says("250 2.0.0 kept\r\n");
	assert_verdict(back(), 0, VERDICT_SENT, 250);
}

/* Every test twice: replies whole, and byte by byte. */
static inline int run_twice(const struct CMUnitTest *tests, size_t n)
{
	int failed = _cmocka_run_group_tests("whole", tests, n, NULL, NULL);
	script_piece = 1;
	return failed + _cmocka_run_group_tests("byte by byte", tests, n, NULL, NULL);
}

#define T(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
#define RUN_TWICE(tests) run_twice(tests, sizeof tests / sizeof tests[0])

#endif
