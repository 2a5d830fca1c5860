/* SPDX-License-Identifier: ISC */
#include "smtpc/connection_impl.h"

#include "base/log.h"
#include "base/magic.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/tls.h"
#include "base/tls_dane.h"
#include "base/tls_groups.h"

#include <assert.h>
#include <gsasl.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A host that resumes a session knows us by the certificate that it saw when that began. */
static char *name_of_identity(const struct connection *c)
{
	const SSL_CTX *identity = c->open->transport->identity;
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned len = 0;
	if (identity)
		X509_digest(SSL_CTX_get0_certificate(identity), EVP_sha256(), digest, &len);
	char *text = mem_zalloc(2 * (size_t)len + 1);
	for (unsigned i = 0; i < len; i++)
		snprintf(text + 2 * (size_t)i, 3, "%02x", digest[i]);
	return text;
}

/* The caller's to free(). */
static char *session_key(const struct connection *c)
{
	const struct conf_source *from = c->open->source;
	char *identity = name_of_identity(c);
	char *key = mem_printf("%s:%d/%s/%s%s%s with=%s", c->open->host,
			       address_port(&c->open->address), c->open->transport->title, c->tls,
			       from ? " from=" : "", from ? from->title : "", identity);
	free(identity);
	return key;
}

static const struct conf_list *groups_of(const struct connection *c)
{
	return c->open->conf ? &c->open->conf->tls.groups : NULL;
}

static bool fits_small_hello(const SSL_SESSION *session)
{
	size_t len = 0;
	const unsigned char *ticket;
	SSL_SESSION_get0_ticket(session, &ticket, &len);
	return len <= HELLO_TICKET_MAX;
}

/* One to resume, or NULL. */
static SSL_SESSION *find_session(const struct connection *c)
{
	if (c->anew)
		return NULL;
	char *key = session_key(c);
	SSL_SESSION *session = sessions_take(&c->worker->sessions, key);
	free(key);
	if (session && c->small && !fits_small_hello(session)) {
		SSL_SESSION_free(session);
		session = NULL;
	}
	return session;
}

static bool could_be_smaller(const struct connection *c)
{
	const SSL_SESSION *session = SSL_get_session(stream_ssl(c->stream));
	return !c->small && c->hello_bytes > HELLO_SMALL_MAX &&
	       (tls_groups_can_be_classical(groups_of(c)) ||
		(session && !fits_small_hello(session)));
}

bool connection_choked(const struct connection *c)
{
	return c->handshaking && c->large && !c->hello_answered && c->engine.why;
}

static void sent_hello(struct connection *c, size_t len)
{
	int64_t most_ms = c->open->transport->starttls_timeout;
	c->hello_bytes = len;
	c->large = could_be_smaller(c);
	if (c->large)
		stream_deadline(c->stream,
				most_ms < HELLO_PATIENCE_MS ? most_ms : HELLO_PATIENCE_MS);
}

/* A second ClientHello follows an answer (HelloRetryRequest is a ServerHello). */
static void on_message(void *owner, bool sent, const void *bytes, size_t len)
{
	struct connection *c = owner;
	magic_check(c, CONNECTION_MAGIC);
	if (c->hello_answered)
		return;
	int message = *(const unsigned char *)bytes;
	if (sent && message == SSL3_MT_CLIENT_HELLO) {
		sent_hello(c, len);
	} else if (!sent && message == SSL3_MT_SERVER_HELLO) {
		c->hello_answered = true;
		stream_deadline(c->stream, c->open->transport->starttls_timeout);
	}
}

void connection_start_tls(struct connection *c)
{
	SSL_SESSION *session = find_session(c);
	const char *name =
		connection_by_dane(c) ? c->open->dane->base : c->open->host; /* RFC 7672 8.1 */
	assert(!c->handshaking && !c->engine.secure);
	c->handshaking = true;
	stream_start_tls(c->stream, c->worker->tls, false, tls_server_name(name), session);
	SSL_SESSION_free(session);
	SSL *ssl = stream_ssl(c->stream);
	if (!ssl)
		return;
	SSL_set_app_data(ssl, c);
	stream_watch_handshake(c->stream, on_message);
	tls_groups_offer(ssl, groups_of(c), c->small); /* or the default */
	tls_demand(ssl, tls_policy_level(c->tls),
		   c->open->conf ? c->open->conf->tls.minimum : TLS_MINIMUM_1_2);
	if (connection_by_dane(c))
		tls_dane_prepare(ssl, c->open->dane); /* or nothing fits */
	if (c->open->transport->identity)
		tls_show_identity(ssl, c->open->transport->identity);
}

/* RFC 9266: of TLS 1.3. */
static size_t export_binding(SSL *ssl, unsigned char bytes[EVP_MAX_MD_SIZE])
{
	static const char label[] = "EXPORTER-Channel-Binding";
	const size_t len = 32;
	return SSL_export_keying_material(ssl, bytes, len, label, strlen(label),
					  (const unsigned char *)"", 0, 1) == 1
		       ? len
		       : 0;
}

/* RFC 5929 3: the first Finished message. Without the extended master secret it proves nothing. */
static size_t unique_binding(SSL *ssl, unsigned char bytes[EVP_MAX_MD_SIZE])
{
	if (SSL_get_extms_support(ssl) != 1)
		return 0;
	return SSL_session_reused(ssl) ? SSL_get_peer_finished(ssl, bytes, EVP_MAX_MD_SIZE)
				       : SSL_get_finished(ssl, bytes, EVP_MAX_MD_SIZE);
}

/* The channel binding of TLS, which stands. */
static struct sasl_binding connection_binding(const struct connection *c)
{
	SSL *ssl = stream_ssl(c->stream);
	unsigned char bytes[EVP_MAX_MD_SIZE];
	struct sasl_binding b = {.exporter = SSL_version(ssl) >= TLS1_3_VERSION};
	size_t len = b.exporter ? export_binding(ssl, bytes) : unique_binding(ssl, bytes);
	char *text = NULL;
	if (len > 0 && gsasl_base64_to((char *)bytes, len, &text, NULL) == GSASL_OK)
		snprintf(b.text, sizeof b.text, "%s", text);
	free(text);
	return b;
}

static const char *text_or_none(const char *text)
{
	return text ? text : "none";
}

/* Of one that stands. The names and records that a policy of DANE has are the domain's, and long. */
static void log_tls(const struct connection *c, enum tls_verified verified, const char *record,
		    const char *reason)
{
	SSL *ssl = c->engine.state == ENGINE_HANDSHAKE ? stream_ssl(c->stream) : NULL;
	bool done = ssl && SSL_is_init_finished(ssl);
	log_event(reason ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO, "tls", "site", c->open->site, "host",
		  c->peer, "version", done ? SSL_get_version(ssl) : NULL, "cipher",
		  done ? text_or_none(SSL_get_cipher_name(ssl)) : NULL, "group",
		  done ? tls_groups_negotiated(ssl) : NULL, "policy",
		  connection_by_dane(c) ? "dane" : c->tls, "resumed",
		  done && SSL_session_reused(ssl) ? "yes" : NULL, "verified",
		  tls_verified_word(verified), "tlsa", record, "reason", reason, NULL);
}

void connection_log_unverified(const struct connection *c, const char *reason)
{
	log_tls(c, TLS_VERIFIED_NONE, NULL, reason);
}

void connection_failed_test(const struct connection *c, const char *reason)
{
	if (!tls_policy_sts(c->tls) || tls_policy_level(c->tls) == TRANSPORT_TLS_VERIFY)
		return;
	metrics_add(METRIC_sts_testing_failed, 1);
	connection_log_unverified(c, log_text("MTA-STS, which is only tested: %s", reason));
}

/* Of one whose certificate is asked about. untold: why it would not have done, where nobody insists. */
static enum tls_verified verify_host(const struct connection *c, struct buf *record,
				     struct buf *why, struct buf *untold)
{
	bool demanded = tls_policy_level(c->tls) == TRANSPORT_TLS_VERIFY;
	if (connection_by_dane(c))
		return tls_dane_verify(stream_ssl(c->stream), record, why) ? TLS_VERIFIED_DANE
									   : TLS_VERIFIED_NONE;
	if (!demanded && !tls_policy_sts(c->tls))
		return TLS_VERIFIED_NONE; /* nobody was asked who it is */
	return tls_verify(stream_ssl(c->stream), c->open->conf ? c->open->conf->authorities : NULL,
			  tls_policy_items(c->tls), demanded ? why : untold);
}

static void trust_host(struct connection *c, enum tls_verified verified)
{
	static const enum metric results[] = {[TLS_VERIFIED_NONE] = METRIC_tls_client_unverified,
					      [TLS_VERIFIED_TRUSTED] = METRIC_tls_client_unverified,
					      [TLS_VERIFIED_MATCHED] = METRIC_tls_client_matched,
					      [TLS_VERIFIED_STS] = METRIC_tls_client_sts,
					      [TLS_VERIFIED_DANE] = METRIC_tls_client_dane};
	assert((size_t)verified < sizeof results / sizeof results[0]);
	metrics_add(results[verified], 1);
	c->engine.proven = verified >= TLS_VERIFIED_MATCHED;
	c->engine.sasl_setup.binding = connection_binding(c);
	engine_secured(&c->engine);
}

static void distrust_host(struct connection *c, const char *why)
{
	metrics_add(METRIC_tls_client_untrusted, 1);
	connection_forget_session(c);
	engine_untrusted(&c->engine, why);
}

/* A session holds the certificate that was shown when it began. The host may have another by now, and has not been asked for it: what
 * is wrong with the old one is no fault of the host, nor a reason to return mail. */
static bool blames_session(const struct connection *c)
{
	return !c->anew && SSL_session_reused(stream_ssl(c->stream));
}

/* Where a policy is only tested, nothing is kept back for it, and no connection made once more: the next one has a full handshake, and so has each
 * as long as the host fails. */
static void fail_test(struct connection *c, const char *untold)
{
	connection_forget_session(c);
	c->failed_test = true;
	if (!blames_session(c))
		connection_failed_test(c, untold);
}

/* untold: as verify_host() has it; why: likewise. */
static void conclude_handshake(struct connection *c, enum tls_verified verified, const char *record,
			       struct buf *why, const char *untold)
{
	bool good = buf_len(why) == 0;
	if (!good && c->demanded)
		buf_puts(why, ", and no login is sent without proof");
	if (!*untold || !blames_session(c))
		connection_report_shaken(c, verified, good ? untold : buf_cstr(why));
	if (*untold)
		fail_test(c, untold);
	log_tls(c, verified, *record ? record : NULL, good ? NULL : buf_cstr(why));
	if (good)
		trust_host(c, verified);
	else
		distrust_host(c, buf_cstr(why));
}

static void spoil_session(struct connection *c, const char *why)
{
	connection_forget_session(c);
	c->spoilt = true;
	engine_untrusted(&c->engine, why);
}

void connection_shaken(struct connection *c)
{
	struct buf why = {0}, record = {0}, untold = {0};
	enum tls_verified verified = verify_host(c, &record, &why, &untold);
	if (buf_len(&why) > 0 && blames_session(c))
		spoil_session(c, buf_cstr(&why));
	else
		conclude_handshake(c, verified, buf_cstr(&record), &why, buf_cstr(&untold));
	buf_fini(&untold);
	buf_fini(&record);
	buf_fini(&why);
}

void connection_lacks_tls(const struct connection *c)
{
	const struct verdict *why = c->engine.why;
	if (!why || c->announced || c->engine.setup.tls < TRANSPORT_TLS_REQUIRED)
		return;
	bool missing = c->engine.lacks_tls;
	if (!missing && !c->handshaking)
		return;
	metrics_add(missing ? METRIC_tls_client_missing : METRIC_tls_client_failed, 1);
	connection_report(c, missing ? TLS_RESULT_NO_STARTTLS : TLS_RESULT_FAILED, why->text);
	connection_log_unverified(c, why->text);
}

int connection_new_session(SSL *ssl, SSL_SESSION *session)
{
	struct connection *c = SSL_get_app_data(ssl);
	if (c)
		magic_check(c, CONNECTION_MAGIC);
	if (!c || !c->open || c->failed_test || !SSL_SESSION_is_resumable(session))
		return 0;
	char *key = session_key(c);
	sessions_put(&c->worker->sessions, key, session);
	free(key);
	return 1; /* the reference is ours */
}

void connection_forget_session(struct connection *c)
{
	char *key = session_key(c);
	sessions_drop(&c->worker->sessions, key);
	free(key);
}
