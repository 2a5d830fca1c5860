/* SPDX-License-Identifier: ISC */
#include "smtpc/connection_impl.h"

#include "base/mem.h"
#include "base/tls_dane.h"

#include <stdlib.h>
#include <string.h>

enum { RECORDS_MAX = 20 };

/* As how it has failed, of a certificate that MTA-STS does not want. */
static enum tls_result_type fault_of(const struct connection *c, enum tls_verified verified)
{
	if (!*tls_policy_sts(c->tls))
		return TLS_RESULT_FAILED;
	if (verified == TLS_VERIFIED_TRUSTED)
		return TLS_RESULT_OTHER_NAME;
	return SSL_get_verify_result(stream_ssl(c->stream)) == X509_V_ERR_CERT_HAS_EXPIRED
		       ? TLS_RESULT_EXPIRED
		       : TLS_RESULT_NOT_TRUSTED;
}

/* The policy is what the host's TLSA records say. */
static void of_records(struct tls_result *r, const struct tls_dane *dane)
{
	struct buf text = {0};
	for (int i = 0; i < dane->nrecord && i < RECORDS_MAX; i++) {
		tls_dane_put(&text, &dane->record[i]);
		buf_puts(&text, "\n");
	}
	free(r->text);
	r->policy = TLS_RESULT_OF_TLSA;
	r->text = buf_steal(&text, NULL);
}

static void post(const struct connection *c, enum tls_result_type type, const char *reason)
{
	const struct tls_subject *of = c->open->subject;
	struct tls_result *r = tls_result_new(of, type, reason);
	if (tls_policy_level(c->tls) == TRANSPORT_TLS_DANE)
		of_records(r, c->open->dane);
	r->mx = mem_strdup(c->open->host);
	r->address = c->open->address;
	stream_local(c->stream, &r->own);
	loop_post(of->to, &r->note);
}

void connection_report(const struct connection *c, enum tls_result_type type, const char *reason)
{
	if (c->open->subject && tls_policy_level(c->tls) != TRANSPORT_TLS_NONE)
		post(c, type, reason);
}

void connection_report_shaken(const struct connection *c, enum tls_verified verified,
			      const char *reason)
{
	bool dane = tls_policy_level(c->tls) == TRANSPORT_TLS_DANE;
	/* What only our own configuration demands is nobody's business. */
	if ((!dane && !tls_policy_sts(c->tls)) || verified >= TLS_VERIFIED_MATCHED)
		connection_report(c, TLS_RESULT_SUCCESS, NULL);
	else if (dane)
		connection_report(c, TLS_RESULT_FAILED, reason);
	else
		connection_report(c, fault_of(c, verified), reason);
}
