/* SPDX-License-Identifier: ISC */
#include "base/tls.h"

#include "base/file_io.h"
#include "base/tls_groups.h"
#include "base/tls_keys.h"

#include <assert.h>
#include <ctype.h>
#include <openssl/err.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where somebody is authenticated, weak keys and old hashes would make that worth little. */
enum { VERIFY_SECURITY_LEVEL = 2 };

#define AEAD "ECDHE+AESGCM:ECDHE+CHACHA20:DHE+AESGCM"

static void put_error(struct buf *error, const char *what, const char *file)
{
	const char *reason = tls_keys_words(ERR_peek_error());
	buf_printf(error, "%s %s: %s", what, file, reason ? reason : "unknown error");
	ERR_clear_error();
}

static void set_common(SSL_CTX *c)
{
	SSL_CTX_set_min_proto_version(c, TLS1_2_VERSION);
	SSL_CTX_set_options(c, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	SSL_CTX_set_mode(c, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
				    SSL_MODE_RELEASE_BUFFERS);
}

/* Ticket keys are random for each context already; session ids are told apart by this. */
static bool set_session_context(SSL_CTX *c)
{
	unsigned char id[16];
	SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
	return RAND_bytes(id, sizeof id) == 1 &&
	       SSL_CTX_set_session_id_context(c, id, sizeof id) == 1;
}

static bool load_identity(SSL_CTX *c, const char *certificate, const char *key, struct buf *error)
{
	if (!tls_keys_use_certificate(c, certificate)) {
		put_error(error, "certificate", certificate);
		return false;
	}
	if (!tls_keys_use_key(c, key)) {
		put_error(error, "key", key);
		return false;
	}
	return true;
}

SSL_CTX *tls_server_context(const char *certificate, const char *key, bool cbc,
			    const struct conf_list *groups, struct buf *error)
{
	ERR_clear_error();
	SSL_CTX *c = SSL_CTX_new(TLS_server_method());
	if (!c) {
		put_error(error, "TLS", "context");
		return NULL;
	}
	set_common(c);
	SSL_CTX_set_options(c, SSL_OP_CIPHER_SERVER_PREFERENCE);
	SSL_CTX_set_cipher_list(c, cbc ? AEAD ":ECDHE+AES:!aNULL" : AEAD ":!aNULL");
	if (!set_session_context(c) || !tls_groups_of_server(c, groups) ||
	    !load_identity(c, certificate, key, error)) {
		if (buf_len(error) == 0)
			put_error(error, "TLS", "context");
		SSL_CTX_free(c);
		return NULL;
	}
	return c;
}

SSL_CTX *tls_identity(const char *certificate, const char *key, struct buf *error)
{
	ERR_clear_error();
	SSL_CTX *c = SSL_CTX_new(TLS_client_method());
	if (!c) {
		put_error(error, "TLS", "context");
	} else if (!load_identity(c, certificate, key, error)) {
		SSL_CTX_free(c);
		c = NULL;
	}
	return c;
}

bool tls_show_identity(SSL *ssl, SSL_CTX *identity)
{
	STACK_OF(X509) *chain = NULL;
	assert(SSL_in_before(ssl));
	return SSL_CTX_get0_chain_certs(identity, &chain) == 1 &&
	       SSL_use_certificate(ssl, SSL_CTX_get0_certificate(identity)) == 1 &&
	       SSL_use_PrivateKey(ssl, SSL_CTX_get0_privatekey(identity)) == 1 &&
	       SSL_set1_chain(ssl, chain) == 1;
}

static int go_on_whatever(int good, X509_STORE_CTX *chain)
{
	(void)good;
	(void)chain;
	return 1;
}

/* OpenSSL would wait for somebody who writes to a named pipe. */
static bool can_be_read(const char *file)
{
	FILE *from = file_open(file);
	if (from)
		fclose(from);
	else
		ERR_raise(ERR_LIB_SYS, errno);
	return from != NULL;
}

bool tls_ask_client(SSL_CTX *c, const char *ca, struct buf *error)
{
	ERR_clear_error();
	SSL_CTX_set_verify(c, SSL_VERIFY_PEER, go_on_whatever);
	if (!*ca)
		return true;
	STACK_OF(X509_NAME) *names = can_be_read(ca) ? SSL_load_client_CA_file(ca) : NULL;
	if (!names || SSL_CTX_load_verify_file(c, ca) != 1) {
		put_error(error, "client_ca", ca);
		sk_X509_NAME_pop_free(names, X509_NAME_free);
		return false;
	}
	SSL_CTX_set_client_CA_list(c, names);
	return true;
}

SSL_CTX *tls_client_context(void)
{
	SSL_CTX *c = SSL_CTX_new(TLS_client_method());
	if (!c) {
		fputs("sluice: OpenSSL can't make a context\n", stderr);
		abort();
	}
	set_common(c);
	SSL_CTX_set_verify(c, SSL_VERIFY_NONE, NULL);
	/* Nobody is authenticated, and the other choice is no encryption at all: weak keys will
	 * do. */
	SSL_CTX_set_cipher_list(c, "DEFAULT:@SECLEVEL=1");
	if (SSL_CTX_dane_enable(c) <= 0 || !tls_groups_of_client(c)) {
		fputs("sluice: OpenSSL can't do DANE, or has no groups\n", stderr);
		abort();
	}
	SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	return c;
}

void tls_demand(SSL *ssl, enum transport_tls level, int minimum)
{
	assert(SSL_in_before(ssl) && level <= TRANSPORT_TLS_DANE_ONLY);
	assert(minimum == TLS_MINIMUM_1_2 || minimum == TLS_MINIMUM_1_3);
	if (level >= TRANSPORT_TLS_REQUIRED && minimum == TLS_MINIMUM_1_3)
		SSL_set_min_proto_version(ssl, TLS1_3_VERSION);
	if (level == TRANSPORT_TLS_VERIFY) {
		SSL_set_cipher_list(ssl, "DEFAULT");
		SSL_set_security_level(ssl, VERIFY_SECURITY_LEVEL);
	}
}

const char *tls_server_name(const char *host)
{
	size_t len = strlen(host);
	bool name = len > 0 && len < 256 && !strchr(host, ':') &&
		    !isdigit((unsigned char)host[len - 1]);
	return name ? host : NULL;
}
