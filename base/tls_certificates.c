/* SPDX-License-Identifier: ISC */
#include "base/tls_certificates.h"

#include "base/date.h"
#include "base/file_io.h"
#include "base/mem.h"
#include "base/tls.h"
#include "base/tls_keys.h"

#include <assert.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ocsp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { OCSP_MAX = 64 << 10, SESSION_ID_SIZE = 16 };

/* One certificate of a context, and what is stapled to it. */
struct shown {
	X509 *own; /* a reference */
	unsigned char *ocsp;
	long ocsp_len;
	int64_t ocsp_until_ms; /* by the date; 0: it is another certificate's */
};

/* Data that hang on a context: on the first one the others too. */
struct shelf {
	int nshown, nother;
	struct shown *shown;
	SSL_CTX **other;
};

static int shelf_index;
static pthread_once_t shelf_once = PTHREAD_ONCE_INIT;

static void free_shelf(void *parent, void *ptr, CRYPTO_EX_DATA *data, int index, long argl,
		       void *argp)
{
	struct shelf *s = ptr;
	(void)parent;
	(void)data;
	(void)index;
	(void)argl;
	(void)argp;
	if (!s)
		return;
	for (int i = 0; i < s->nshown; i++) {
		X509_free(s->shown[i].own);
		free(s->shown[i].ocsp);
	}
	for (int i = 0; i < s->nother; i++)
		SSL_CTX_free(s->other[i]);
	free(s->shown);
	free(s->other);
	free(s);
}

static void make_index(void)
{
	shelf_index = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, free_shelf);
}

static struct shelf *shelf_of(const SSL_CTX *c)
{
	return SSL_CTX_get_ex_data(c, shelf_index);
}

static bool names_it(const SSL_CTX *c, const char *name)
{
	const struct shelf *s = shelf_of(c);
	assert(s->nshown > 0);
	return X509_check_host(s->shown[0].own, name, 0, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS,
			       NULL) == 1;
}

static int on_name(SSL *ssl, int *alert, void *first)
{
	const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
	const struct shelf *s = shelf_of(first);
	(void)alert;
	if (!name || names_it(first, name))
		return SSL_TLSEXT_ERR_OK;
	for (int i = 0; i < s->nother; i++)
		if (names_it(s->other[i], name)) {
			SSL_set_SSL_CTX(ssl, s->other[i]);
			break;
		}
	return SSL_TLSEXT_ERR_OK; /* a name that nobody has gets the first */
}

static int on_status(SSL *ssl, void *unused)
{
	const struct shelf *s = shelf_of(SSL_get_SSL_CTX(ssl));
	const X509 *chosen = SSL_get_certificate(ssl);
	(void)unused;
	for (int i = 0; i < s->nshown; i++) {
		const struct shown *it = &s->shown[i];
		if (X509_cmp(it->own, chosen) != 0)
			continue;
		if (!it->ocsp || it->ocsp_until_ms <= date_ms())
			break;
		unsigned char *copy = OPENSSL_memdup(it->ocsp, (size_t)it->ocsp_len);
		if (!copy)
			break;
		SSL_set_tlsext_status_ocsp_resp(ssl, copy, it->ocsp_len);
		return SSL_TLSEXT_ERR_OK;
	}
	return SSL_TLSEXT_ERR_NOACK;
}

static int64_t to_wall_ms(const ASN1_TIME *t)
{
	struct tm tm = {0};
	return ASN1_TIME_to_tm(t, &tm) == 1 ? (int64_t)timegm(&tm) * 1000 : 0;
}

char *tls_certificate_ocsp(const char *file)
{
	return mem_printf("%s.ocsp", file);
}

/* The part of an answer about this certificate; NULL: there is none. */
static OCSP_SINGLERESP *find_own(OCSP_BASICRESP *basic, const X509 *own)
{
	for (int i = 0; i < OCSP_resp_count(basic); i++) {
		ASN1_INTEGER *serial = NULL;
		OCSP_SINGLERESP *one = OCSP_resp_get0(basic, i);
		OCSP_id_get0_info(NULL, NULL, NULL, &serial,
				  (OCSP_CERTID *)OCSP_SINGLERESP_get0_id(one));
		if (serial && ASN1_INTEGER_cmp(serial, X509_get0_serialNumber(own)) == 0)
			return one;
	}
	return NULL;
}

/* False: it is no answer. One that says nothing of the certificate, as is left behind by the one before, is never in
 * force. */
static bool judge_answer(struct shown *it, OCSP_RESPONSE *answer)
{
	ASN1_GENERALIZEDTIME *next = NULL;
	bool done = OCSP_response_status(answer) == OCSP_RESPONSE_STATUS_SUCCESSFUL;
	OCSP_BASICRESP *basic = done ? OCSP_response_get1_basic(answer) : NULL;
	OCSP_SINGLERESP *one = basic ? find_own(basic, it->own) : NULL;
	bool good = basic != NULL;
	if (one)
		OCSP_single_get0_status(one, NULL, NULL, NULL, &next);
	if (one)
		it->ocsp_until_ms = next ? to_wall_ms(next) : INT64_MAX;
	OCSP_BASICRESP_free(basic);
	return good;
}

/* Where there is none, nothing is stapled. */
static bool read_ocsp(struct shown *it, const char *certificate, struct buf *error)
{
	char *file = tls_certificate_ocsp(certificate);
	unsigned char bytes[OCSP_MAX];
	FILE *from = file_open(file);
	size_t len = from ? fread(bytes, 1, sizeof bytes, from) : 0;
	const unsigned char *at = bytes;
	OCSP_RESPONSE *answer = len > 0 ? d2i_OCSP_RESPONSE(NULL, &at, (long)len) : NULL;
	bool good = !from && errno == ENOENT;
	if (answer && judge_answer(it, answer)) {
		good = true;
		it->ocsp_len = (long)len;
		it->ocsp = mem_alloc(len);
		memcpy(it->ocsp, bytes, len);
	}
	if (!good)
		buf_printf(error, "%s: it cannot be read, or is no answer of an OCSP server", file);
	OCSP_RESPONSE_free(answer);
	ERR_clear_error();
	if (from)
		fclose(from);
	free(file);
	return good;
}

static bool show_certificate(SSL_CTX *c, const char *certificate, struct buf *error)
{
	struct shelf *s = shelf_of(c);
	s->shown = mem_realloc(s->shown, (size_t)(s->nshown + 1) * sizeof *s->shown);
	struct shown *it = &s->shown[s->nshown++];
	*it = (struct shown){.own = SSL_CTX_get0_certificate(c)};
	X509_up_ref(it->own);
	return read_ocsp(it, certificate, error);
}

static SSL_CTX *context_of(const struct conf_listener *l, int i, const struct conf_list *groups,
			   struct buf *error)
{
	SSL_CTX *c = tls_server_context(l->certificate.item[i], l->key.item[i], l->tls_cbc, groups,
					error);
	if (!c)
		return NULL;
	pthread_once(&shelf_once, make_index);
	SSL_CTX_set_ex_data(c, shelf_index, mem_zalloc(sizeof(struct shelf)));
	SSL_CTX_set_tlsext_status_cb(c, on_status);
	if (show_certificate(c, l->certificate.item[i], error))
		return c;
	SSL_CTX_free(c);
	return NULL;
}

static bool same_names(const X509 *a, const X509 *b)
{
	GENERAL_NAMES *x = X509_get_ext_d2i(a, NID_subject_alt_name, NULL, NULL);
	GENERAL_NAMES *y = X509_get_ext_d2i(b, NID_subject_alt_name, NULL, NULL);
	int n = x ? sk_GENERAL_NAME_num(x) : 0, m = y ? sk_GENERAL_NAME_num(y) : 0, found = 0;
	for (int i = 0; i < n && n == m; i++)
		for (int k = 0; k < m; k++)
			if (GENERAL_NAME_cmp(sk_GENERAL_NAME_value(x, i),
					     sk_GENERAL_NAME_value(y, k)) == 0) {
				found++;
				break;
			}
	GENERAL_NAMES_free(x);
	GENERAL_NAMES_free(y);
	return n > 0 && n == m && found == n;
}

static bool has_kind(const SSL_CTX *c, int kind)
{
	const struct shelf *s = shelf_of(c);
	for (int i = 0; i < s->nshown; i++)
		if (EVP_PKEY_get_base_id(X509_get0_pubkey(s->shown[i].own)) == kind)
			return true;
	return false;
}

/* May the certificate of b be shown where that of a is? */
static bool go_together(const SSL_CTX *a, const SSL_CTX *b)
{
	const X509 *own = shelf_of(b)->shown[0].own;
	return same_names(shelf_of(a)->shown[0].own, own) &&
	       !has_kind(a, EVP_PKEY_get_base_id(X509_get0_pubkey(own)));
}

static bool load_pair(SSL_CTX *to, const struct conf_listener *l, int i, struct buf *error)
{
	bool done = tls_keys_use_certificate(to, l->certificate.item[i]) &&
		    tls_keys_use_key(to, l->key.item[i]);
	if (!done)
		buf_printf(error, "certificate %s: it has changed just now",
			   l->certificate.item[i]);
	return done && show_certificate(to, l->certificate.item[i], error);
}

static bool add_certificate(SSL_CTX *first, const struct conf_listener *l, int i,
			    const struct conf_list *groups, struct buf *error)
{
	SSL_CTX *c = context_of(l, i, groups, error);
	struct shelf *s = shelf_of(first);
	if (!c)
		return false;
	SSL_CTX *with = go_together(first, c) ? first : NULL;
	for (int k = 0; k < s->nother && !with; k++)
		if (go_together(s->other[k], c))
			with = s->other[k];
	if (with) {
		SSL_CTX_free(c);
		return load_pair(with, l, i, error);
	}
	s->other = mem_realloc(s->other, (size_t)(s->nother + 1) * sizeof(SSL_CTX *));
	s->other[s->nother++] = c;
	return true;
}

/* A session that began with one certificate may be resumed whichever is asked for: it is one listener. */
static bool share_sessions(SSL_CTX *first)
{
	unsigned char id[SESSION_ID_SIZE];
	const struct shelf *s = shelf_of(first);
	bool good = RAND_bytes(id, sizeof id) == 1 &&
		    SSL_CTX_set_session_id_context(first, id, sizeof id) == 1;
	for (int i = 0; i < s->nother && good; i++)
		good = SSL_CTX_set_session_id_context(s->other[i], id, sizeof id) == 1;
	return good;
}

SSL_CTX *tls_certificates_context(const struct conf_listener *l, const struct conf_list *groups,
				  struct buf *error)
{
	assert(l->certificate.n > 0 && l->certificate.n == l->key.n);
	SSL_CTX *first = context_of(l, 0, groups, error);
	bool good = first != NULL;
	for (int i = 1; good && i < l->certificate.n; i++)
		good = add_certificate(first, l, i, groups, error);
	if (!good || !share_sessions(first)) {
		if (good)
			buf_puts(error, "there are no random numbers");
		SSL_CTX_free(first);
		return NULL;
	}
	SSL_CTX_set_tlsext_servername_callback(first, on_name);
	SSL_CTX_set_tlsext_servername_arg(first, first);
	if (!l->tls_session_tickets) {
		SSL_CTX_set_options(first, SSL_OP_NO_TICKET);
		SSL_CTX_set_num_tickets(first, 0);
	}
	return first;
}

bool tls_certificates_ask_client(SSL_CTX *first, const char *ca, struct buf *error)
{
	const struct shelf *s = shelf_of(first);
	bool good = tls_ask_client(first, ca, error);
	for (int i = 0; i < s->nother && good; i++)
		good = tls_ask_client(s->other[i], ca, error);
	return good;
}

bool tls_certificate_span(const char *file, struct tls_span *span)
{
	FILE *from = file_open(file);
	X509 *own = from ? PEM_read_X509_AUX(from, NULL, NULL, NULL) : NULL;
	if (own)
		*span = (struct tls_span){to_wall_ms(X509_get0_notBefore(own)),
					  to_wall_ms(X509_get0_notAfter(own))};
	if (from)
		fclose(from);
	ERR_clear_error();
	X509_free(own);
	return own != NULL;
}

bool tls_certificate_has_others_ocsp(const char *file)
{
	struct buf unread = {0};
	struct shown it = {0};
	FILE *from = file_open(file);
	it.own = from ? PEM_read_X509_AUX(from, NULL, NULL, NULL) : NULL;
	bool others = it.own && read_ocsp(&it, file, &unread) && it.ocsp && it.ocsp_until_ms == 0;
	if (from)
		fclose(from);
	ERR_clear_error();
	buf_fini(&unread);
	free(it.ocsp);
	X509_free(it.own);
	return others;
}
