/* tls_result.h - the contract between the threads that see results of TLS to a domain, and tlsrpt, which reports them.
 *
 *	qmgr -- struct tls_subject, with each connection --> smtpc -- TLS_RESULT --> [ tlsrpt ]
 *	sts, qmgr: what fails before there is a connection -------- TLS_RESULT -->
 *
 * OWNERSHIP  Results are given away by posting. Subjects are counted.
 * THREAD     Any.
 * ERRORS     None.
 * SEE        RFC 8460 4.3 (result types), 4.4.
 */
#ifndef BASE_TLS_RESULT_H
#define BASE_TLS_RESULT_H

#include "base/conf.h"
#include "base/loop.h"
#include "base/resolve.h"
#include "base/sts_policy.h"

enum { TLS_REPORT_FROM_SIZE = 340 };

/* TLS_RESULTS_SAVE: a text_note for main, with results that are kept over restarts, as tlsrpt/tlsrpt_text.h has them. */
enum tls_result_note { TLS_RESULT = NOTES_FROM(NOTES_OF_TLS_RESULT), TLS_RESULTS_SAVE };

/* X(type, its word) */
#define TLS_RESULT_TYPES(X)                                                                        \
	X(SUCCESS, "success")                                                                      \
	X(NO_STARTTLS, "starttls-not-supported")                                                   \
	X(OTHER_NAME, "certificate-host-mismatch")                                                 \
	X(EXPIRED, "certificate-expired")                                                          \
	X(NOT_TRUSTED, "certificate-not-trusted")                                                  \
	X(FAILED, "validation-failure")                                                            \
	X(TLSA_INVALID, "tlsa-invalid")                                                            \
	X(DNSSEC_INVALID, "dnssec-invalid")                                                        \
	X(DANE_REQUIRED, "dane-required")                                                          \
	X(STS_FETCH, "sts-policy-fetch-error")                                                     \
	X(STS_INVALID, "sts-policy-invalid")                                                       \
	X(STS_UNTRUSTED, "sts-webpki-invalid")

enum tls_result_type {
#define X(type, word) TLS_RESULT_##type,
	TLS_RESULT_TYPES(X)
#undef X
		TLS_RESULT_TYPE_COUNT
};

/* X(policy, its word) */
#define TLS_RESULT_POLICIES(X)                                                                     \
	X(NONE, "no-policy-found")                                                                 \
	X(STS, "sts")                                                                              \
	X(TLSA, "tlsa")

enum tls_result_policy {
#define X(policy, word) TLS_RESULT_OF_##policy,
	TLS_RESULT_POLICIES(X)
#undef X
		TLS_RESULT_POLICY_COUNT
};

const char *tls_result_type_word(enum tls_result_type);
const char *tls_result_policy_word(enum tls_result_policy);

/* Whose mail a connection is for, as far as reports want to know. */
struct tls_subject {
	atomic_int refs;
	struct loop *to;	/* who counts */
	char *domain;		/* in ASCII, as it is asked for in the DNS */
	struct sts_policy *sts; /* a reference, or NULL */
};

struct tls_subject *tls_subject_new(struct loop *to, const char *domain, struct sts_policy *);
/* Takes a reference of its own on the policy. */

struct tls_subject *tls_subject_ref(struct tls_subject *); /* NULL stays NULL */
void tls_subject_unref(struct tls_subject *);		   /* NULL is allowed */

struct tls_result {
	struct note note;
	char *domain;
	enum tls_result_policy policy;
	char *text; /* of the policy, a line for each field; "" where there is none to tell */
	enum tls_result_type type;
	char *mx;		    /* or NULL */
	union address address, own; /* of the mail host, and ours; family 0: not known */
	char *reason;		    /* or NULL */
};

void tls_report_names(const struct conf *, char hostname[256], char from[TLS_REPORT_FROM_SIZE]);
/* Who we are in reports, and the address that they come from. */

struct tls_result *tls_result_new(const struct tls_subject *, enum tls_result_type,
				  const char *reason);
/* Of this domain under its MTA-STS policy, or none: to be completed, and posted to subject->to. */

void tls_result_free(struct tls_result **);

#endif
