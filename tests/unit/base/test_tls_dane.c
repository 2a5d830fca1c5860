/* SPDX-License-Identifier: ISC */
#include "base/tls_dane.h"

#include "base/mem.h"
#include "base/tls.h"

#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static unsigned char *certificate_der, *key_der;
static size_t certificate_len, key_len;

/* A certificate of nobody, which is all that it takes to be read. */
static int make_certificate(void **state)
{
	(void)state;
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *x = X509_new();
	ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
	X509_gmtime_adj(X509_getm_notBefore(x), 0);
	X509_gmtime_adj(X509_getm_notAfter(x), 3600);
	X509_set_pubkey(x, key);
	assert_true(X509_sign(x, key, EVP_sha256()) > 0);
	int len = i2d_X509(x, &certificate_der);
	assert_true(len > 0);
	certificate_len = (size_t)len;
	len = i2d_PUBKEY(key, &key_der);
	assert_true(len > 0);
	key_len = (size_t)len;
	X509_free(x);
	EVP_PKEY_free(key);
	return 0;
}

static int free_certificate(void **state)
{
	(void)state;
	OPENSSL_free(certificate_der);
	OPENSSL_free(key_der);
	return 0;
}

static bool openssl_takes(SSL_CTX *context, const struct resolve_tlsa *t)
{
	SSL *ssl = SSL_new(context);
	assert_true(SSL_dane_enable(ssl, "mx.test") > 0);
	bool takes =
		SSL_dane_tlsa_add(ssl, t->usage, t->selector, t->matching, t->data, t->len) > 0;
	SSL_free(ssl);
	return takes;
}

static void what_openssl_takes_of_usages_2_and_3_is_usable_and_no_more(void **state)
{
	(void)state;
	SSL_CTX *context = tls_client_context();
	uint8_t bytes[70] = {1, 2, 3};
	struct {
		uint8_t *data;
		size_t len;
	} contents[] = {{certificate_der, certificate_len},
			{certificate_der, certificate_len - 1},
			{key_der, key_len},
			{key_der, key_len - 1},
			{bytes, 0},
			{bytes, 1},
			{bytes, 19},
			{bytes, 31},
			{bytes, 32},
			{bytes, 33},
			{bytes, 64},
			{bytes, 70}};
	for (int head = 0; head < 5 * 3 * 5; head++)
		for (size_t i = 0; i < sizeof contents / sizeof *contents; i++) {
			struct resolve_tlsa t = {.usage = (uint8_t)(head / 15),
						 .selector = (uint8_t)(head / 5 % 3),
						 .matching = (uint8_t)(head % 5),
						 .data = contents[i].data,
						 .len = contents[i].len};
			bool known = t.usage == 2 || t.usage == 3;
			bool may = known && openssl_takes(context, &t);
			if (tls_dane_usable(&t) != may)
				fail_msg("%d %d %d of %zu bytes", t.usage, t.selector, t.matching,
					 t.len);
		}
	SSL_CTX_free(context);
}

static uint8_t digest[32] = {1}, other_digest[32] = {2};
static const struct resolve_tlsa of_key = {3, 1, 1, 32, digest};
static const struct resolve_tlsa of_other_key = {3, 1, 1, 32, other_digest};
static const struct resolve_tlsa of_authority = {2, 0, 1, 32, digest};
static const struct resolve_tlsa of_the_web = {1, 1, 1, 32, digest};

static struct tls_dane *dane_of(const struct resolve_tlsa *t, int n)
{
	const char *const hop[] = {"a.test", "end.test", NULL};
	return tls_dane_new("mx.test", hop, 3, t, n);
}

static void names_of_the_next_hop_count_under_an_authority_only(void **state)
{
	(void)state;
	struct tls_dane *d = dane_of(&of_key, 1);
	assert_string_equal(d->names, "mx.test");
	assert_string_equal(d->title, "dane");
	tls_dane_unref(d);
	d = dane_of(&of_authority, 1);
	assert_string_equal(d->names, "mx.test,a.test,end.test");
	assert_string_equal(d->title, "dane:a.test,end.test");
	assert_int_equal(strncmp(d->policy, "dane:mx.test,a.test,end.test,tlsa=", 34), 0);
	tls_dane_unref(d);
	const char *const same[] = {"mx.test", "mx.test"};
	d = tls_dane_new("mx.test", same, 2, &of_authority, 1);
	assert_string_equal(d->title, "dane");
	tls_dane_unref(d);
}

static void other_records_are_another_identity_and_their_order_is_none(void **state)
{
	(void)state;
	struct resolve_tlsa two[] = {of_key, of_other_key}, turned[] = {of_other_key, of_key};
	struct tls_dane *a = dane_of(two, 2), *b = dane_of(turned, 2), *c = dane_of(two, 1);
	assert_string_equal(a->policy, b->policy);
	assert_string_not_equal(a->policy, c->policy);
	tls_dane_unref(a);
	tls_dane_unref(b);
	tls_dane_unref(c);
}

static void without_a_usable_record_tls_is_required_of_whoever_it_is(void **state)
{
	(void)state;
	struct tls_dane *d = dane_of(&of_the_web, 1);
	assert_int_equal(d->nusable, 0);
	assert_string_equal(d->policy, "required");
	tls_dane_unref(d);
	struct resolve_tlsa two[] = {of_the_web, of_key};
	d = dane_of(two, 2);
	assert_int_equal(d->nusable, 1);
	assert_int_equal(strncmp(d->policy, "dane:mx.test,tlsa=", 18), 0);
	tls_dane_unref(d);
}

static void a_record_is_shown_cut_where_it_is_long(void **state)
{
	(void)state;
	struct buf b = {0};
	struct resolve_tlsa few = {3, 1, 1, 3, digest};
	tls_dane_put(&b, &few);
	assert_string_equal(buf_cstr(&b), "3 1 1 010000");
	buf_clear(&b);
	uint8_t bytes[65] = {0};
	struct resolve_tlsa many = {2, 0, 0, 65, bytes};
	tls_dane_put(&b, &many);
	assert_non_null(strstr(buf_cstr(&b), "0... (65 bytes)"));
	buf_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_openssl_takes_of_usages_2_and_3_is_usable_and_no_more),
		cmocka_unit_test(names_of_the_next_hop_count_under_an_authority_only),
		cmocka_unit_test(other_records_are_another_identity_and_their_order_is_none),
		cmocka_unit_test(without_a_usable_record_tls_is_required_of_whoever_it_is),
		cmocka_unit_test(a_record_is_shown_cut_where_it_is_long),
	};
	return cmocka_run_group_tests(tests, make_certificate, free_certificate);
}
