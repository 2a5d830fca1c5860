/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "base/conf_value.h"
#include "base/tls.h"
#include "base/tls_groups.h"

#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <string.h>

static struct conf_list list;
static SSL_CTX *server, *client;
static int hellos;	  /* ClientHellos that the client has sent */
static size_t first_size; /* of the first */

static void show_key(SSL_CTX *c)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *cert = X509_new();
	X509_gmtime_adj(X509_getm_notBefore(cert), 0);
	X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
	X509_set_pubkey(cert, key);
	X509_sign(cert, key, EVP_sha256());
	SSL_CTX_use_certificate(c, cert);
	SSL_CTX_use_PrivateKey(c, key);
	X509_free(cert);
	EVP_PKEY_free(key);
}

static int begin(void **state)
{
	(void)state;
	server = SSL_CTX_new(TLS_server_method());
	show_key(server);
	client = tls_client_context();
	return 0;
}

static int end(void **state)
{
	(void)state;
	SSL_CTX_free(server);
	SSL_CTX_free(client);
	conf_list_free(&list);
	return 0;
}

static const struct conf_list *of(const char *names)
{
	char *all = strdup(names), *rest = all;
	conf_list_free(&list);
	for (char *name; (name = strsep(&rest, " "));)
		conf_list_add(&list, name);
	free(all);
	return &list;
}

static void count_hello(int sent, int version, int type, const void *bytes, size_t len, SSL *ssl,
			void *arg)
{
	(void)version;
	(void)ssl;
	(void)arg;
	if (!sent || type != SSL3_RT_HANDSHAKE || *(const char *)bytes != SSL3_MT_CLIENT_HELLO)
		return;
	if (hellos++ == 0)
		first_size = len;
}

/* The group, as the client has it; NULL: there was no handshake. Frees both. */
static const char *shake(SSL *from, SSL *to)
{
	BIO *a, *b;
	BIO_new_bio_pair(&a, 0, &b, 0);
	SSL_set_bio(from, a, a);
	SSL_set_bio(to, b, b);
	SSL_set_connect_state(from);
	SSL_set_accept_state(to);
	SSL_set_msg_callback(from, count_hello);
	hellos = 0;
	bool done = false;
	for (int i = 0; i < 10 && !done; i++) {
		int one = SSL_do_handshake(from), other = SSL_do_handshake(to);
		done = one == 1 && other == 1;
	}
	const char *group = done ? tls_groups_negotiated(from) : NULL;
	if (done)
		assert_string_equal(tls_groups_negotiated(to), group);
	SSL_free(from);
	SSL_free(to);
	return group;
}

static const char *shake_as_client(const struct conf_list *own, bool classical)
{
	SSL *from = SSL_new(client);
	if (own)
		assert_true(tls_groups_offer(from, own, classical));
	return shake(from, SSL_new(server));
}

static const char *shake_with_client_of(const char *groups)
{
	SSL *from = SSL_new(client);
	assert_int_equal(SSL_set1_groups_list(from, groups), 1);
	return shake(from, SSL_new(server));
}

static bool has_hybrid(void)
{
	return tls_groups_can_be_classical(NULL);
}

static void a_list_has_groups_that_the_library_knows_each_once(void **state)
{
	static const struct {
		const char *names;
		bool good;
	} row[] = {{"X25519", true},
		   {"X25519 P-256", true},
		   {"X25519 ffdhe2048", true},
		   {"P-256 X25519 p-256", false},
		   {"X25519 X25519", false},
		   {"X25518", false},
		   {"", true}, /* the default */
		   {"*X25519", false},
		   {"?X25519", false},
		   {"-X25519", false},
		   {"P-384 DEFAULT", false},
		   {"P-384 X25519:P-256", false},
		   {"P-384 X25519/P-256", false}};
	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
		struct buf why = {0};
		const struct conf_list *l = of(row[i].names);
		assert_int_equal(tls_groups_good(l, l->n - 1, &why), row[i].good);
		assert_int_equal(buf_len(&why) == 0, row[i].good);
		buf_fini(&why);
	}
}

static void a_client_without_one_of_ours_is_refused(void **state)
{
	(void)state;
	assert_true(tls_groups_of_server(server, NULL));
	assert_string_equal(shake_with_client_of("X25519"), "x25519");
	assert_string_equal(shake_with_client_of("P-256"), "secp256r1");
	assert_string_equal(shake_with_client_of("P-384"), "secp384r1");
	assert_null(shake_with_client_of("ffdhe8192"));
	assert_null(shake_with_client_of("ffdhe2048"));
	assert_null(shake_with_client_of("P-521"));
	assert_true(tls_groups_of_server(server, of("ffdhe2048")));
	assert_string_equal(shake_with_client_of("ffdhe2048:X25519"), "ffdhe2048");
}

static void a_server_that_wants_another_group_gets_none(void **state)
{
	(void)state;
	SSL_CTX_set1_groups_list(server, "ffdhe8192:ffdhe2048:P-521");
	assert_null(shake_as_client(NULL, false));
	assert_null(shake_as_client(&(struct conf_list){0}, false));
	assert_string_equal(shake_as_client(of("X25519 ffdhe2048"), false), "ffdhe2048");
}

static void a_server_has_the_order_of_its_list(void **state)
{
	(void)state;
	assert_true(tls_groups_of_server(server, of("P-384 X25519")));
	assert_string_equal(shake_with_client_of("P-384:X25519"), "secp384r1");
	assert_string_equal(shake_with_client_of("X25519"), "x25519");
}

static void a_server_without_hybrids_needs_one_hello(void **state)
{
	(void)state;
	SSL_CTX_set1_groups_list(server, "X25519:P-256");
	assert_string_equal(shake_as_client(NULL, false), "x25519");
	assert_int_equal(hellos, 1);
	SSL_CTX_set1_groups_list(server, "P-256");
	assert_string_equal(shake_as_client(NULL, false), "secp256r1");
	assert_int_equal(hellos, 2); /* so they are counted */
}

static void hybrids_come_first_and_classical_is_small(void **state)
{
	(void)state;
	if (!has_hybrid())
		skip();
	assert_true(tls_groups_of_server(server, NULL));
	assert_string_equal(shake_as_client(NULL, false), "X25519MLKEM768");
	assert_int_equal(hellos, 1);
	assert_in_range(first_size, 1200, 2000);
	assert_string_equal(shake_as_client(&(struct conf_list){0}, true), "x25519");
	assert_in_range(first_size, 100, 600);
	/* Whatever key the client has sent already. */
	assert_string_equal(shake_with_client_of("*X25519:X25519MLKEM768"), "X25519MLKEM768");
	assert_int_equal(hellos, 2);
}

static void a_list_of_hybrids_alone_is_never_classical(void **state)
{
	(void)state;
	assert_false(tls_groups_can_be_classical(of("X25519 P-256")));
	assert_true(tls_groups_can_be_classical(of("X25519 X25519MLKEM768")));
	assert_false(tls_groups_can_be_classical(of("X25519MLKEM768")));
	if (!has_hybrid())
		skip();
	assert_string_equal(shake_as_client(of("X25519MLKEM768"), true), "X25519MLKEM768");
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, begin, end)
	const struct CMUnitTest tests[] = {
		T(a_list_has_groups_that_the_library_knows_each_once),
		T(a_client_without_one_of_ours_is_refused),
		T(a_server_that_wants_another_group_gets_none),
		T(a_server_has_the_order_of_its_list),
		T(a_server_without_hybrids_needs_one_hello),
		T(hybrids_come_first_and_classical_is_small),
		T(a_list_of_hybrids_alone_is_never_classical),
	};
	return RUN(tests);
}
