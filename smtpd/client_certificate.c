/* SPDX-License-Identifier: ISC */
#include "smtpd/client_certificate.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/tables.h"
#include "base/users.h"

#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FINGERPRINT = 32 }; /* bytes of SHA-256 */

static char *normal_login(const char *text)
{
	char login[USERS_LOGIN_MAX + 1];
	return users_login(text, login, NULL) ? mem_strdup(login) : NULL;
}

static char *by_fingerprint(const struct session *s, const X509 *x)
{
	unsigned char digest[FINGERPRINT];
	char key[2 * FINGERPRINT + 1];
	struct table_origin origin;
	if (X509_digest(x, EVP_sha256(), digest, NULL) != 1)
		return NULL;
	for (int i = 0; i < FINGERPRINT; i++)
		snprintf(key + 2 * i, 3, "%02x", digest[i]);
	char *found = tables_get(s->worker->conf->tables, TABLE_CLIENT_CERTIFICATES, key, &origin);
	char *login = found ? normal_login(found) : NULL;
	free(found);
	return login;
}

static char *text_of(const ASN1_STRING *string)
{
	unsigned char *utf8;
	int len = string ? ASN1_STRING_to_UTF8(&utf8, string) : -1;
	if (len < 0)
		return NULL;
	char *login = strlen((char *)utf8) == (size_t)len ? normal_login((char *)utf8) : NULL;
	OPENSSL_free(utf8);
	return login;
}

static char *first_address(const X509 *x)
{
	GENERAL_NAMES *all = X509_get_ext_d2i(x, NID_subject_alt_name, NULL, NULL);
	char *login = NULL;
	for (int i = 0; !login && i < sk_GENERAL_NAME_num(all); i++) {
		const GENERAL_NAME *name = sk_GENERAL_NAME_value(all, i);
		if (name->type == GEN_EMAIL)
			login = text_of(name->d.rfc822Name);
	}
	GENERAL_NAMES_free(all);
	return login;
}

static char *common_name(const X509 *x)
{
	const X509_NAME *subject = X509_get_subject_name(x);
	int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
	return at < 0 ? NULL : text_of(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
}

/* Of a session that is resumed OpenSSL tells what it found when that began. */
static bool is_in_date(const X509 *x)
{
	return X509_cmp_timeframe(NULL, X509_get0_notBefore(x), X509_get0_notAfter(x)) == 0;
}

static char *by_authority(const struct session *s, const X509 *x)
{
	if (!*s->service->listener->client_ca ||
	    SSL_get_verify_result(stream_ssl(s->stream)) != X509_V_OK || !is_in_date(x))
		return NULL;
	char *login = first_address(x);
	return login ? login : common_name(x);
}

char *client_certificate_login(const struct session *s)
{
	char client[64];
	X509 *x = SSL_get1_peer_certificate(stream_ssl(s->stream));
	if (!x)
		return NULL;
	char *login = s->service->listener->auth ? by_fingerprint(s, x) : NULL;
	if (!login)
		login = by_authority(s, x);
	X509_free(x);
	const char *result = login ? "ok" : "unknown";
	metric_cell_add(metric_cell(FAMILY_auth, result, "CERTIFICATE"), 1);
	log_event(LOG_LEVEL_INFO, "auth", "session", log_id(s->number), "client",
		  address_text(&s->peer, client), "login", login, "mechanism", "CERTIFICATE",
		  "result", result, NULL);
	return login;
}
