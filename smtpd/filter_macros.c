/* SPDX-License-Identifier: ISC */
#include "smtpd/filter_macros.h"

#include "base/ident.h"
#include "base/log.h"
#include "base/mailaddr.h"
#include "smtpd/reception.h"

#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <string.h>

static const char *client_name(const struct session *s)
{
	return s->client_name ? s->client_name : "unknown";
}

static const char *client_text(const struct session *s)
{
	char text[64];
	return log_text("%s [%s]", client_name(s), address_text(&s->peer, text));
}

static const char *client_address(const struct session *s)
{
	char text[64];
	return log_text("%s", address_text(&s->peer, text));
}

static const char *client_port(const struct session *s)
{
	return log_text("%d", address_port(&s->peer));
}

static const char *daemon_address(const struct session *s)
{
	union address local;
	char text[64];
	if (!s->stream)
		return NULL;
	stream_local(s->stream, &local);
	return log_text("%s", address_text(&local, text));
}

static const char *daemon_port(const struct session *s)
{
	union address local;
	if (!s->stream)
		return NULL;
	stream_local(s->stream, &local);
	return log_text("%d", address_port(&local));
}

static const char *daemon_name(const struct session *s)
{
	return s->service->listener->title;
}

static const char *own_hostname(const struct session *s)
{
	return s->service->hostname;
}

static const char *product_name(const struct session *s)
{
	(void)s;
	return "sluice";
}

/* Its client may have gone while the content is looked at. */
static bool is_tls(const struct session *s)
{
	return s->tls && s->stream;
}

static const char *tls_version(const struct session *s)
{
	return is_tls(s) ? SSL_get_version(stream_ssl(s->stream)) : NULL;
}

static const char *cipher_name(const struct session *s)
{
	return is_tls(s) ? SSL_get_cipher_name(stream_ssl(s->stream)) : NULL;
}

static const char *cipher_bits(const struct session *s)
{
	return is_tls(s) ? log_text("%d", SSL_get_cipher_bits(stream_ssl(s->stream), NULL)) : NULL;
}

/* Of a certificate that is believed. */
static const char *name_in_certificate(const struct session *s,
				       const X509_NAME *(*which)(const X509 *))
{
	char name[256];
	SSL *ssl = is_tls(s) ? stream_ssl(s->stream) : NULL;
	X509 *c = ssl ? SSL_get0_peer_certificate(ssl) : NULL;
	if (!c || SSL_get_verify_result(ssl) != X509_V_OK ||
	    X509_NAME_get_text_by_NID((X509_NAME *)which(c), NID_commonName, name, sizeof name) < 0)
		return NULL;
	return log_text("%s", name);
}

static const X509_NAME *subject_of(const X509 *c)
{
	return X509_get_subject_name(c);
}

static const X509_NAME *issuer_of(const X509 *c)
{
	return X509_get_issuer_name(c);
}

static const char *cert_subject(const struct session *s)
{
	return name_in_certificate(s, subject_of);
}

static const char *cert_issuer(const struct session *s)
{
	return name_in_certificate(s, issuer_of);
}

static const char *mail_id(const struct session *s)
{
	char text[IDENT_TEXT];
	return s->tx && s->tx->id ? log_text("%s", ident_text(s->tx->id, text)) : NULL;
}

static const char *login_name(const struct session *s)
{
	return s->login;
}

static const char *login_mechanism(const struct session *s)
{
	return s->login ? s->mechanism : NULL;
}

/* Where mail goes is not decided yet. */
static const char *mailer_name(const struct session *s)
{
	(void)s;
	return "smtp";
}

static const struct row {
	const char *name;
	const char *(*value)(const struct session *);
} rows[] = {
	{"j", own_hostname},
	{"v", product_name},
	{"_", client_text},
	{"i", mail_id},
	{"{daemon_name}", daemon_name},
	{"{daemon_addr}", daemon_address},
	{"{daemon_port}", daemon_port},
	{"{if_name}", own_hostname},
	{"{if_addr}", daemon_address},
	{"{client_addr}", client_address},
	{"{client_name}", client_name},
	{"{client_ptr}", client_name},
	{"{client_port}", client_port},
	{"{tls_version}", tls_version},
	{"{cipher}", cipher_name},
	{"{cipher_bits}", cipher_bits},
	{"{cert_subject}", cert_subject},
	{"{cert_issuer}", cert_issuer},
	{"{auth_authen}", login_name},
	{"{auth_type}", login_mechanism},
	{"{mail_mailer}", mailer_name},
	{"{rcpt_mailer}", mailer_name},
};

const char *filter_macro(const struct filter_macros *m, const char *name)
{
	if (strcmp(name, "{mail_addr}") == 0)
		return m->sender;
	if (strcmp(name, "{mail_host}") == 0)
		return m->sender ? mailaddr_domain(m->sender) : NULL;
	if (strcmp(name, "{rcpt_addr}") == 0)
		return m->recipient;
	if (strcmp(name, "{rcpt_host}") == 0)
		return m->recipient ? mailaddr_domain(m->recipient) : NULL;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (strcmp(rows[i].name, name) == 0)
			return rows[i].value(m->session);
	return NULL;
}
