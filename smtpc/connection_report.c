/* SPDX-License-Identifier: ISC */
#include "smtpc/connection_impl.h"

#include "base/mem.h"
#include "base/tls_dane.h"

#include <stdlib.h>
#include <string.h>

enum { RECORDS_MAX = 20 };

/* There are TLSA records, and none that can be used; nor is there MTA-STS instead. */
static bool by_useless_records(const struct connection *c)
{
	const struct tls_dane *dane = c->open->dane;
	return dane && dane->nusable == 0 && !tls_policy_sts(c->tls);
}

static bool out_of_date(const struct connection *c)
{
	long error = SSL_get_verify_result(stream_ssl(c->stream));
	return error == X509_V_ERR_CERT_HAS_EXPIRED || error == X509_V_ERR_CERT_NOT_YET_VALID;
}

/* As how it has failed, of a certificate that does not fit TLSA records. */
static enum tls_result_type dane_fault_of(const struct connection *c)
{
	if (out_of_date(c))
		return TLS_RESULT_EXPIRED;
	return SSL_get_verify_result(stream_ssl(c->stream)) == X509_V_ERR_HOSTNAME_MISMATCH
		       ? TLS_RESULT_OTHER_NAME
		       : TLS_RESULT_FAILED;
}

/* The same, of one that MTA-STS does not want. */
static enum tls_result_type sts_fault_of(const struct connection *c, enum tls_verified verified)
{
	if (!*tls_policy_sts(c->tls))
		return TLS_RESULT_FAILED;
	if (verified == TLS_VERIFIED_TRUSTED)
		return TLS_RESULT_OTHER_NAME;
	return out_of_date(c) ? TLS_RESULT_EXPIRED : TLS_RESULT_NOT_TRUSTED;
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

static void post_result(const struct connection *c, enum tls_result_type type, const char *reason)
{
	const struct tls_subject *of = c->open->subject;
	struct tls_result *r = tls_result_new(of, type, reason);
	if (connection_by_dane(c) || by_useless_records(c))
		of_records(r, c->open->dane);
	r->mx = mem_strdup(c->open->host);
	r->address = c->open->address;
	stream_local(c->stream, &r->own);
	loop_post(of->to, &r->note);
}

void connection_report(const struct connection *c, enum tls_result_type type, const char *reason)
{
	if (c->open->subject && tls_policy_level(c->tls) != TRANSPORT_TLS_NONE)
		post_result(c, type, reason);
}

void connection_report_shaken(const struct connection *c, enum tls_verified verified,
			      const char *reason)
{
	/* A policy that only our own configuration demands is nobody's business. */
	bool demanded = connection_by_dane(c) || tls_policy_sts(c->tls);
	if (by_useless_records(c))
		connection_report(c, TLS_RESULT_TLSA_INVALID, "no TLSA record of it can be used");
	else if (!demanded || verified >= TLS_VERIFIED_MATCHED)
		connection_report(c, TLS_RESULT_SUCCESS, NULL);
	else if (connection_by_dane(c))
		connection_report(c, dane_fault_of(c), reason);
	else
		connection_report(c, sts_fault_of(c, verified), reason);
}
