/* SPDX-License-Identifier: ISC */
#include "cmd/sink/sink_tls.h"

#include "base/mem.h"
#include "base/tls_keys.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdlib.h>

enum { DAYS = 30, HOUR_S = 3600, DIGEST = 32 };

static bool add_extension(X509 *x, int nid, const char *value)
{
	X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, NULL, nid, value);
	bool good = e && X509_add_ext(x, e, -1) == 1;
	X509_EXTENSION_free(e);
	return good;
}

static bool set_names(X509 *x, const char *name)
{
	X509_NAME *subject = X509_get_subject_name(x);
	char *alternative = mem_printf("DNS:%s", name);
	bool good = X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
					       (const unsigned char *)"sluice sink", -1, -1, 0) &&
		    X509_set_issuer_name(x, subject) == 1 &&
		    add_extension(x, NID_subject_alt_name, alternative);
	free(alternative);
	return good;
}

static bool set_dates(X509 *x)
{
	return X509_gmtime_adj(X509_getm_notBefore(x), -HOUR_S) &&
	       X509_time_adj_ex(X509_getm_notAfter(x), DAYS, 0, NULL);
}

static bool set_serial(X509 *x)
{
	int32_t serial;
	return RAND_bytes((unsigned char *)&serial, sizeof serial) == 1 &&
	       ASN1_INTEGER_set(X509_get_serialNumber(x), serial & INT32_MAX) == 1;
}

static bool make_certificate(SSL_CTX *c, const char *name)
{
	X509 *x = X509_new();
	EVP_PKEY *key = EVP_EC_gen("P-256");
	bool good = x && key && X509_set_version(x, X509_VERSION_3) == 1 && set_serial(x) &&
		    set_dates(x) && set_names(x, name) && X509_set_pubkey(x, key) == 1 &&
		    X509_sign(x, key, EVP_sha256()) > 0 && SSL_CTX_use_certificate(c, x) == 1 &&
		    SSL_CTX_use_PrivateKey(c, key) == 1;
	X509_free(x);
	EVP_PKEY_free(key);
	return good;
}

SSL_CTX *sink_tls_new(const struct sink_options *o, struct buf *error)
{
	SSL_CTX *c = SSL_CTX_new(TLS_server_method());
	const char *what = o->certificate ? o->certificate : o->name;
	bool good = c && (o->certificate ? tls_keys_use_certificate(c, o->certificate)
					 : make_certificate(c, o->name));
	if (good && o->certificate) {
		what = o->key;
		good = tls_keys_use_key(c, o->key);
	}
	if (good) {
		SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
		SSL_CTX_set_mode(c, SSL_MODE_ENABLE_PARTIAL_WRITE |
					    SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
		return c;
	}
	const char *reason = tls_keys_words(ERR_peek_error());
	buf_printf(error, "%s: %s", what, reason ? reason : "it can't be read");
	ERR_clear_error();
	SSL_CTX_free(c);
	return NULL;
}

void sink_tls_print_key(SSL_CTX *c, struct buf *to)
{
	unsigned char digest[EVP_MAX_MD_SIZE] = {0}, *key = NULL;
	int len = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(SSL_CTX_get0_certificate(c)), &key);
	if (len > 0)
		EVP_Digest(key, (size_t)len, digest, NULL, EVP_sha256(), NULL);
	for (int i = 0; i < DIGEST; i++)
		buf_printf(to, "%02x", digest[i]);
	OPENSSL_free(key);
}
