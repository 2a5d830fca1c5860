/* SPDX-License-Identifier: ISC */
#include "cmd/local/tls_probe.h"

#include "base/address.h"
#include "base/mem.h"
#include "base/tls.h"
#include "base/tls_dane.h"
#include "base/tls_groups.h"
#include "base/tls_policy.h"
#include "cmd/maildrop/submit_talk.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>

/* OpenSSL's text in memory, as a string; takes the BIO. */
static char *text_of(BIO *b)
{
	char *data;
	long len = BIO_get_mem_data(b, &data);
	char *text = mem_strndup(data, len > 0 ? (size_t)len : 0);
	BIO_free(b);
	return text;
}

static char *name_text(const X509_NAME *name)
{
	BIO *b = BIO_new(BIO_s_mem());
	X509_NAME_print_ex(b, name, 0, XN_FLAG_RFC2253 & ~(unsigned long)ASN1_STRFLGS_ESC_MSB);
	return text_of(b);
}

static char *alternative_names(X509 *x)
{
	struct buf names = {0};
	GENERAL_NAMES *all = X509_get_ext_d2i(x, NID_subject_alt_name, NULL, NULL);
	for (int i = 0; all && i < sk_GENERAL_NAME_num(all); i++) {
		BIO *b = BIO_new(BIO_s_mem());
		GENERAL_NAME_print(b, sk_GENERAL_NAME_value(all, i));
		char *one = text_of(b);
		buf_printf(&names, "%s%s", i ? "," : "", one);
		free(one);
	}
	GENERAL_NAMES_free(all);
	return buf_steal(&names, NULL);
}

static void set_time(struct tls_probe_certificate *c, const X509 *x)
{
	struct tm tm = {0};
	int days = 0, seconds = 0;
	const ASN1_TIME *until = X509_get0_notAfter(x);
	if (ASN1_TIME_to_tm(until, &tm) == 1)
		c->until_ms = (int64_t)timegm(&tm) * 1000;
	if (ASN1_TIME_diff(&days, &seconds, NULL, until) == 1)
		c->days = seconds < 0 && days == 0 ? -1 : days;
}

static void describe_certificate(struct tls_probe_certificate *c, X509 *x)
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	const EVP_PKEY *key = X509_get0_pubkey(x);
	c->subject = name_text(X509_get_subject_name(x));
	c->issuer = name_text(X509_get_issuer_name(x));
	c->names = alternative_names(x);
	c->key = mem_printf("%s %d", key ? EVP_PKEY_get0_type_name(key) : "unknown",
			    key ? EVP_PKEY_get_bits(key) : 0);
	if (X509_digest(x, EVP_sha256(), digest, NULL) == 1)
		for (size_t i = 0; i < sizeof c->fingerprint / 2; i++)
			snprintf(c->fingerprint + 2 * i, 3, "%02x", digest[i]);
	set_time(c, x);
}

static void describe_all(struct tls_probe *p, SSL *ssl)
{
	STACK_OF(X509) *chain = SSL_get_peer_cert_chain(ssl);
	for (int i = 0; chain && i < sk_X509_num(chain) && p->nchain < PROBE_CHAIN_MAX; i++)
		describe_certificate(&p->chain[p->nchain++], sk_X509_value(chain, i));
}

static bool by_dane(const struct tls_probe *p)
{
	return tls_policy_level(p->policy) == TRANSPORT_TLS_DANE;
}

static void verify_peer(struct tls_probe *p, SSL *ssl, const struct tls_authorities *a,
			const struct tls_probe_host *h)
{
	if (by_dane(p)) {
		bool fits = tls_dane_verify(ssl, &p->record, &p->reason);
		p->verified = fits ? TLS_VERIFIED_DANE : TLS_VERIFIED_NONE;
		return;
	}
	char *plain = tls_policy_of_hop("verify", h->hop);
	bool asked = *tls_policy_items(p->policy);
	p->verified = tls_verify(ssl, a, tls_policy_items(asked ? p->policy : plain), &p->reason);
	free(plain);
}

static void shake_hands(struct tls_probe *p, int fd, const struct conf *conf,
			const struct tls_authorities *a, const struct tls_probe_host *h)
{
	SSL_CTX *context = tls_client_context();
	SSL *ssl = SSL_new(context);
	const char *name = tls_server_name(by_dane(p) ? h->dane->base : h->name);
	SSL_set_fd(ssl, fd);
	tls_demand(ssl, tls_policy_level(p->policy), conf->tls.minimum);
	tls_groups_offer(ssl, &conf->tls.groups, p->small); /* or the default */
	if (name)
		SSL_set_tlsext_host_name(ssl, name);
	if (by_dane(p))
		tls_dane_prepare(ssl, h->dane); /* or nothing fits */
	if (h->by->identity)
		tls_show_identity(ssl, h->by->identity);
	ERR_clear_error();
	p->shaken = SSL_connect(ssl) == 1;
	if (p->shaken) {
		static const char quit[] = "QUIT\r\n";
		p->version = SSL_get_version(ssl);
		p->cipher = SSL_get_cipher_name(ssl); /* OpenSSL's, for good */
		p->group = mem_strdup(tls_groups_negotiated(ssl));
		verify_peer(p, ssl, a, h);
		describe_all(p, ssl);
		SSL_write(ssl, quit, (int)strlen(quit));
	} else {
		const char *why = ERR_reason_error_string(ERR_peek_last_error());
		p->failure = mem_printf("TLS: %s", why ? why : "the connection broke off");
	}
	SSL_free(ssl);
	SSL_CTX_free(context);
}

static void note_failure(struct tls_probe *p, const char *when, struct talk *t)
{
	p->failure = mem_printf("%s: %s", when, buf_cstr(&t->reply));
}

/* A flow has its own each day: the first that can connect to the host stands for all. NULL: none is named. */
static const struct conf_source *find_source(const struct tls_probe_host *h)
{
	const struct conf_uses *uses = &h->by->uses;
	for (int i = 0; i < uses->n; i++)
		if (conf_source_address(uses->of[i].source, h->address->sa.sa_family))
			return uses->of[i].source;
	return NULL;
}

/* A host that knows no EHLO may know HELO, which offers nothing: RFC 5321 3.2. */
static int say_hello(struct talk *t, const struct tls_probe_host *h, const char *own)
{
	if (h->by->protocol == TRANSPORT_PROTOCOL_LMTP)
		return talk_say(t, "LHLO %s", own);
	int code = talk_say(t, "EHLO %s", own);
	return code / 100 == 5 ? talk_say(t, "HELO %s", own) : code;
}

static void talk_smtp(struct tls_probe *p, struct talk *t, const struct conf *conf,
		      const struct tls_authorities *a, const struct tls_probe_host *h)
{
	const char *own = conf_hello(conf, h->by, find_source(h));
	if (talk_read(t) != 220)
		note_failure(p, "greeting", t);
	else if (say_hello(t, h, own) / 100 != 2)
		note_failure(p, "EHLO", t);
	else if ((p->offered = talk_offers(t, "STARTTLS")) && talk_say(t, "STARTTLS") != 220)
		note_failure(p, "STARTTLS", t);
	else if (p->offered)
		shake_hands(p, t->fd, conf, a, h);
	else
		talk_say(t, "QUIT");
}

static void talk_to(struct tls_probe *p, const char *to, const struct conf *conf,
		    const struct tls_authorities *a, const struct tls_probe_host *h)
{
	struct talk t;
	union address own[2];
	const union address *from =
		conf_transport_from(h->by, find_source(h), h->address->sa.sa_family, own);
	if (talk_open_within(&t, to, from, PROBE_SECONDS))
		talk_smtp(p, &t, conf, a, h);
	else
		note_failure(p, "connect", &t);
	talk_close(&t);
}

/* As a delivery would. Where that is no help, the first failure is the one to tell. */
static void try_small(struct tls_probe *p, const char *to, const struct conf *conf,
		      const struct tls_authorities *a, const struct tls_probe_host *h)
{
	char *failure = p->failure;
	p->failure = NULL;
	p->small = true;
	talk_to(p, to, conf, a, h);
	p->small = p->shaken;
	if (p->shaken) {
		free(failure);
	} else {
		free(p->failure);
		p->failure = failure;
		p->offered = true;
	}
}

void tls_probe_run(struct tls_probe *p, const struct conf *conf, const struct tls_authorities *a,
		   const struct tls_probe_host *h)
{
	char where[ADDRESS_WHERE_MAX];
	*p = (struct tls_probe){.policy = h->dane ? mem_strdup(h->dane->policy)
						  : tls_policy_of_host(h->of_hop, h->name)};
	bool six = h->address->sa.sa_family == AF_INET6;
	char *to = mem_printf(six ? "[%s]:%d" : "%s:%d", address_where(h->address, where),
			      address_port(h->address));
	talk_to(p, to, conf, a, h);
	if (p->offered && !p->shaken && tls_groups_can_be_classical(&conf->tls.groups))
		try_small(p, to, conf, a, h);
	free(to);
}

void tls_probe_fini(struct tls_probe *p)
{
	for (int i = 0; i < p->nchain; i++) {
		free(p->chain[i].subject);
		free(p->chain[i].issuer);
		free(p->chain[i].names);
		free(p->chain[i].key);
	}
	buf_fini(&p->record);
	buf_fini(&p->reason);
	free(p->failure);
	free(p->group);
	free(p->policy);
}

/* NONE: nobody is asked who it is. */
static enum tls_verified demanded_verification(const struct tls_probe *p)
{
	if (by_dane(p))
		return TLS_VERIFIED_DANE;
	return tls_policy_level(p->policy) == TRANSPORT_TLS_VERIFY ? TLS_VERIFIED_MATCHED
								   : TLS_VERIFIED_NONE;
}

bool tls_probe_asks(const struct tls_probe *p)
{
	return demanded_verification(p) != TLS_VERIFIED_NONE;
}

bool tls_probe_passes(const struct tls_probe *p)
{
	bool spoke = p->shaken || p->offered || !p->failure;
	if (tls_probe_asks(p))
		return p->shaken &&
		       (p->verified == demanded_verification(p) || p->verified == TLS_VERIFIED_STS);
	return tls_policy_level(p->policy) == TRANSPORT_TLS_REQUIRED ? p->shaken : spoke;
}

void tls_probe_says(const struct tls_probe *p, struct buf *to)
{
	struct buf reason = p->reason;
	bool passes = tls_probe_passes(p);
	if (!p->shaken && !p->offered && p->failure)
		buf_puts(to, "deferred: it cannot be talked to");
	else if (tls_policy_level(p->policy) == TRANSPORT_TLS_NONE)
		buf_puts(to, "sent in clear, as the policy says");
	else if (!p->offered)
		buf_puts(to, passes ? "sent in clear: STARTTLS is not offered"
				    : "deferred, 4.7.4: STARTTLS is not offered");
	else if (!p->shaken)
		buf_printf(to,
			   passes ? "sent in clear, since TLS fails: %s"
				  : "deferred, 4.7.5: TLS fails: %s",
			   p->failure);
	else if (!tls_probe_asks(p))
		buf_puts(to, "sent under TLS, with whoever it is");
	else if (passes)
		buf_puts(to, "sent under TLS, to whom it is meant for");
	else
		buf_printf(to, "deferred, 4.7.5: %s", buf_cstr(&reason));
}
