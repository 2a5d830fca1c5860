/* SPDX-License-Identifier: ISC */
#include "base/tls_dane.h"

#include "base/mem.h"
#include "base/refs.h"

#include <assert.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>

enum {
	USAGE_TA = 2,
	USAGE_EE = 3,
	SELECTOR_CERTIFICATE = 0,
	SELECTOR_KEY = 1,
	MATCHING_FULL = 0,
	MATCHING_SHA256 = 1,
	MATCHING_SHA512 = 2,
	SHA256_SIZE = 32,
	SHA512_SIZE = 64,
	ID_SIZE = 16,
	SHOWN_MAX = 64, /* bytes of a record */
};

static bool is_certificate(const struct resolve_tlsa *t)
{
	const unsigned char *at = t->data;
	X509 *x = d2i_X509(NULL, &at, (long)t->len);
	bool good = x && at == t->data + t->len && X509_get0_pubkey(x);
	X509_free(x);
	return good;
}

static bool is_key(const struct resolve_tlsa *t)
{
	const unsigned char *at = t->data;
	EVP_PKEY *key = d2i_PUBKEY(NULL, &at, (long)t->len);
	bool good = key && at == t->data + t->len;
	EVP_PKEY_free(key);
	return good;
}

static bool is_whole(const struct resolve_tlsa *t)
{
	bool good = t->len > 0 && (t->selector == SELECTOR_KEY ? is_key : is_certificate)(t);
	ERR_clear_error();
	return good;
}

bool tls_dane_usable(const struct resolve_tlsa *t)
{
	if (t->usage != USAGE_TA && t->usage != USAGE_EE)
		return false;
	if (t->selector != SELECTOR_CERTIFICATE && t->selector != SELECTOR_KEY)
		return false;
	switch (t->matching) {
	case MATCHING_FULL:
		return is_whole(t);
	case MATCHING_SHA256:
		return t->len == SHA256_SIZE;
	case MATCHING_SHA512:
		return t->len == SHA512_SIZE;
	default:
		return false;
	}
}

static int compare_records(const void *a, const void *b)
{
	const struct resolve_tlsa *x = a, *y = b;
	int head_x = x->usage << 16 | x->selector << 8 | x->matching;
	int head_y = y->usage << 16 | y->selector << 8 | y->matching;
	if (head_x != head_y)
		return head_x < head_y ? -1 : 1;
	size_t least = x->len < y->len ? x->len : y->len;
	int order = memcmp(x->data, y->data, least);
	return order != 0 ? order : (x->len > y->len) - (x->len < y->len);
}

static void copy_records(struct tls_dane *d, const struct resolve_tlsa *from, int n)
{
	d->record = mem_zalloc((size_t)n * sizeof *d->record);
	for (int i = 0; i < n; i++) {
		struct resolve_tlsa *to = &d->record[d->nrecord++];
		*to = from[i];
		to->data = mem_alloc(to->len + 1);
		memcpy(to->data, from[i].data, to->len);
	}
	/* The order in which they come is nobody's choice. */
	qsort(d->record, (size_t)n, sizeof *d->record, compare_records);
	assert(d->nrecord == n);
}

static void put_id(struct buf *to, const struct tls_dane *d)
{
	unsigned char digest[EVP_MAX_MD_SIZE] = {0};
	struct buf all = {0};
	for (int i = 0; i < d->nrecord; i++) {
		const struct resolve_tlsa *t = &d->record[i];
		buf_printf(&all, "%d %d %d %zu ", t->usage, t->selector, t->matching, t->len);
		buf_append(&all, (const char *)t->data, t->len);
	}
	EVP_Digest(buf_data(&all), buf_len(&all), digest, NULL, EVP_sha256(), NULL);
	for (int i = 0; i < ID_SIZE; i++)
		buf_printf(to, "%02x", digest[i]);
	buf_fini(&all);
}

static bool is_among(const char *const *name, int n, const char *one)
{
	while (n > 0 && (!name[n - 1] || strcmp(name[n - 1], one) != 0))
		n--;
	return n > 0;
}

/* Those beside the base, which a certificate may have under an authority of usage 2. */
static char *other_names(const struct tls_dane *d, const char *const *hop, int nhop)
{
	struct buf b = {0};
	bool named = false;
	for (int i = 0; i < d->nrecord; i++)
		named |= d->record[i].usage == USAGE_TA && tls_dane_usable(&d->record[i]);
	buf_puts(&b, "");
	for (int i = 0; named && i < nhop; i++)
		if (hop[i] && strcmp(hop[i], d->base) != 0 && !is_among(hop, i, hop[i]))
			buf_printf(&b, ",%s", hop[i]);
	return buf_len(&b) > 0 ? buf_steal(&b, NULL) : mem_strdup("");
}

struct tls_dane *tls_dane_new(const char *base, const char *const *hop, int nhop,
			      const struct resolve_tlsa *record, int nrecord)
{
	assert(nrecord > 0);
	struct tls_dane *d = mem_zalloc(sizeof *d);
	struct buf policy = {0};
	atomic_init(&d->refs, 1);
	d->base = mem_strdup(base);
	copy_records(d, record, nrecord);
	for (int i = 0; i < nrecord; i++)
		d->nusable += tls_dane_usable(&d->record[i]);
	char *others = other_names(d, hop, nhop);
	d->names = mem_printf("%s%s", base, others);
	d->title = mem_printf("dane%s%s", *others ? ":" : "", *others ? others + 1 : "");
	free(others);
	buf_printf(&policy, "dane:%s,tlsa=", d->names);
	put_id(&policy, d);
	d->policy = d->nusable > 0 ? buf_steal(&policy, NULL) : mem_strdup("required");
	buf_fini(&policy);
	return d;
}

struct tls_dane *tls_dane_ref(struct tls_dane *d)
{
	if (d)
		refs_take(&d->refs);
	return d;
}

void tls_dane_unref(struct tls_dane *d)
{
	if (!d || !refs_drop(&d->refs))
		return;
	for (int i = 0; i < d->nrecord; i++)
		free(d->record[i].data);
	free(d->record);
	free(d->names);
	free(d->base);
	free(d->policy);
	free(d->title);
	free(d);
}

/* Behind the base, which SSL_dane_enable() has taken. */
static bool add_names(SSL *ssl, const char *names)
{
	const char *comma = strchr(names, ',');
	bool good = true;
	while (good && comma) {
		size_t len = strcspn(++comma, ",");
		char *name = mem_strndup(comma, len);
		good = SSL_add1_host(ssl, name) == 1;
		free(name);
		comma = comma[len] ? comma + len : NULL;
	}
	return good;
}

bool tls_dane_prepare(SSL *ssl, const struct tls_dane *d)
{
	int taken = 0;
	assert(SSL_in_before(ssl));
	bool good = SSL_dane_enable(ssl, d->base) > 0 && add_names(ssl, d->names);
	SSL_dane_set_flags(ssl, DANE_FLAG_NO_DANE_EE_NAMECHECKS);
	SSL_set_hostflags(ssl, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT |
				       X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	for (int i = 0; good && i < d->nrecord; i++) {
		const struct resolve_tlsa *t = &d->record[i];
		if (tls_dane_usable(t))
			taken += SSL_dane_tlsa_add(ssl, t->usage, t->selector, t->matching, t->data,
						   t->len) > 0;
	}
	ERR_clear_error();
	return good && taken > 0;
}

static bool fits_records(SSL *ssl, struct buf *why)
{
	X509 *own = SSL_get0_peer_certificate(ssl);
	X509_STORE_CTX *c = X509_STORE_CTX_new();
	X509_STORE *nobody = SSL_CTX_get_cert_store(SSL_get_SSL_CTX(ssl));
	bool good =
		c && own && X509_STORE_CTX_init(c, nobody, own, SSL_get_peer_cert_chain(ssl)) == 1;
	if (good) {
		X509_STORE_CTX_set0_dane(c, SSL_get0_dane(ssl));
		X509_STORE_CTX_set_default(c, "ssl_server");
		X509_VERIFY_PARAM_set1(X509_STORE_CTX_get0_param(c), SSL_get0_param(ssl));
		good = X509_verify_cert(c) == 1;
	}
	if (!good)
		buf_printf(why, "its certificate does not fit its TLSA records: %s",
			   own && c ? X509_verify_cert_error_string(X509_STORE_CTX_get_error(c))
				    : "it has none");
	SSL_set_verify_result(ssl, c ? X509_STORE_CTX_get_error(c) : X509_V_ERR_OUT_OF_MEM);
	X509_STORE_CTX_free(c);
	ERR_clear_error();
	return good;
}

bool tls_dane_verify(SSL *ssl, struct buf *record, struct buf *why)
{
	uint8_t usage, selector, matching;
	if (!fits_records(ssl, why))
		return false;
	if (SSL_get0_dane_tlsa(ssl, &usage, &selector, &matching, NULL, NULL) >= 0) {
		buf_printf(record, "%d %d %d", usage, selector, matching);
		return true;
	}
	buf_puts(why, "its certificate does not fit its TLSA records");
	return false;
}

void tls_dane_put(struct buf *to, const struct resolve_tlsa *t)
{
	buf_printf(to, "%d %d %d ", t->usage, t->selector, t->matching);
	for (size_t i = 0; i < t->len && i < SHOWN_MAX; i++)
		buf_printf(to, "%02x", t->data[i]);
	if (t->len > SHOWN_MAX)
		buf_printf(to, "... (%zu bytes)", t->len);
}
