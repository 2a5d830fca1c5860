/* SPDX-License-Identifier: ISC */
/* Which signatures in a message are ours: only what we would make ourselves, byte by byte. */
#include "tests/unit/dkim/unit.h"

#include "base/mem.h"
#include "base/tls_keys.h"
#include "dkim/dkim.h"
#include "dkim/resign.h"
#include "dkim/signature.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

static const char message[] = "From: <a@own.test>\r\nSubject: one\r\n\r\nHello.\r\n";

static struct conf_dkim section(const char *selector)
{
	static char title[] = "own.test";
	struct conf_dkim d = {.title = title, .selector = mem_strdup(selector)};
	d.loaded = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	d.signing = tls_keys_signing(d.loaded);
	return d;
}

static struct conf *conf_with_keys(void)
{
	struct conf *c = conf_defaults();
	free(c->dkim);
	c->dkim = mem_zalloc(2 * sizeof *c->dkim);
	c->dkim[0] = section("one");
	c->dkim[1] = section("two");
	c->ndkim = 2;
	return c;
}

static struct passage *passage_of(struct conf *c, const char *text)
{
	struct passage *p = passage_new(c, NULL, NULL, NULL, 1);
	p->draft.envelope = envelope_new();
	p->draft.envelope->sender = mem_strdup("");
	p->draft.size = strlen(text);
	p->draft.content = content_in_memory(mem_strdup(text), p->draft.size);
	return p;
}

static char *settled(struct passage *p)
{
	assert_int_equal(passage_run_here(p), PASSAGE_DONE);
	char *text = mem_strndup(p->draft.content->memory, (size_t)p->draft.size);
	passage_free(&p);
	return text;
}

/* As if these sections had signed it, whoever sent it. */
static char *sign(struct conf *c, int n)
{
	static const bool changed = true;
	struct resign r = {.changed = &changed, .n = n, .by = {&c->dkim[0], &c->dkim[1]}};
	for (int i = 0; i < n; i++)
		r.field[i] = mem_strdup("");
	struct passage *p = passage_of(c, message);
	passage_add(p, &dkim_stage, &r);
	char *text = settled(p);
	resign_fini(&r);
	return text;
}

static int ours(struct conf *c, const char *text)
{
	bool changed = false;
	struct resign r = {.changed = &changed};
	struct passage *p = passage_of(c, text);
	passage_add(p, &resign_stage, &r);
	passage_add(p, &dkim_stage, &r);
	char *after = settled(p);
	int n = r.n;
	assert_string_equal(after, text);
	free(after);
	resign_fini(&r);
	return n;
}

static void what_we_have_signed_is_ours(void **state)
{
	struct conf *c = *state;
	char *one = sign(c, 1), *both = sign(c, 2);
	assert_int_equal(ours(c, one), 1);
	assert_int_equal(ours(c, both), 2);
	assert_int_equal(ours(c, message), 0);
	free(one);
	free(both);
}

static void nothing_else_is(void **state)
{
	struct conf *c = *state;
	char *text = sign(c, 1);
	/* Whatever byte of it is another: of the signature, the header, the body. */
	for (size_t i = strlen("DKIM-Signature:"); text[i]; i++) {
		char was = text[i];
		if (!strchr("\r\n\t ", was)) {
			text[i] = was == 'x' ? 'y' : 'x';
			assert_int_equal(ours(c, text), 0);
		}
		text[i] = was;
	}
	free(text);
}

static void fields_that_make_no_sense_are_none(void **state)
{
	static const char *const fields[] = {
		"DKIM-Signature:\r\n",
		"DKIM-Signature: ;;;=;\r\n",
		"DKIM-Signature: t=\r\n",
		"DKIM-Signature: t=1; d=own.test; s=one; a=ed25519-sha256\r\n",
		"DKIM-Signature: t=99999999999999999999999; d=own.test; s=one; "
		"a=ed25519-sha256\r\n",
		"DKIM-Signature: t=-1; d=own.test; s=one; a=ed25519-sha256;\r\n",
		"DKIM-Signature: d=own.test; s=one; a=ed25519-sha256; b=; t=",
	};
	struct conf *c = *state;
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
		char *text = mem_printf("%sFrom: <a@own.test>\r\n\r\n", fields[i]);
		assert_int_equal(ours(c, fields[i]), 0);
		assert_int_equal(ours(c, text), 0);
		free(text);
	}
	/* Many of them cost no more than a few. */
	struct buf many = {0};
	for (int i = 0; i < 5000; i++)
		buf_puts(&many, fields[3]);
	assert_int_equal(ours(c, buf_cstr(&many)), 0);
	buf_fini(&many);
}

static void what_was_changed_is_signed_by_the_same_again(void **state)
{
	struct conf *c = *state;
	bool changed = true;
	struct resign r = {.changed = &changed};
	char *text = sign(c, 2);
	struct passage *p = passage_of(c, text);
	passage_add(p, &resign_stage, &r);
	passage_add(p, &dkim_stage, &r);
	char *after = settled(p);
	assert_int_equal(ours(c, after), 2);
	assert_int_equal(strlen(after), strlen(text)); /* the old ones are gone */
	resign_fini(&r);
	free(after);
	free(text);
}

static int setup(void **state)
{
	*state = conf_with_keys();
	return 0;
}

static int teardown(void **state)
{
	struct conf *c = *state;
	for (int i = 0; i < c->ndkim; i++)
		c->dkim[i].title = NULL;
	conf_unref(c);
	return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_we_have_signed_is_ours),
		TEST(nothing_else_is),
		TEST(fields_that_make_no_sense_are_none),
		TEST(what_was_changed_is_signed_by_the_same_again),
	};
	return RUN(tests);
}
