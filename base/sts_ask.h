/* sts_ask.h - the contract between qmgr and sts: which MTA-STS policy has a domain?
 *
 *	qmgr -- STS_ASK --> [ sts ] -- STS_ANSWER --> the loop named in reply_to
 *
 * The same object goes there and comes back: at once if the policy is known, otherwise after a
 * look-up, which takes at most tls { mta_sts_timeout }.
 *
 * OWNERSHIP  Given away by posting; whoever holds the answer calls sts_ask_free().
 * THREAD     Whoever holds it.
 * ERRORS     In the answer: if the policy cannot be fetched, the domain counts as having none (RFC 8461
 *            3.3), unless an older policy is still valid.
 * SEE        RFC 8461; base/sts_policy.h.
 */
#ifndef BASE_STS_ASK_H
#define BASE_STS_ASK_H

#include "base/loop.h"
#include "base/sts_policy.h"

/* STS_SAVE: a text_note for main, with policies that are kept over restarts, as sts/sts_text.h has them. */
enum sts_note { STS_ASK = NOTES_FROM(NOTES_OF_STS_ASK), STS_ANSWER, STS_SAVE };

/* X(outcome of a look, its word, sentence) */
#define STS_OUTCOMES(X)                                                                            \
	X(NEVER, "never", "nothing was looked for")                                                \
	X(NO_RECORD, "no-record", "the domain has no record")                                      \
	X(BAD_RECORD, "bad-record", "the record is faulty, or there are several")                  \
	X(RECORD_UNKNOWN, "record-unknown", "the record cannot be looked up")                      \
	X(UNCHANGED, "unchanged", "the record is that of the policy known")                        \
	X(FETCHED, "fetched", "")                                                                  \
	X(FETCH_ERROR, "fetch-error", "")                                                          \
	X(UNTRUSTED, "webpki-invalid", "")                                                         \
	X(INVALID, "policy-invalid", "")

enum sts_outcome {
#define X(outcome, ...) STS_##outcome,
	STS_OUTCOMES(X)
#undef X
};

struct sts_ask {
	struct note note;
	struct loop *reply_to;
	void *owner; /* the asker's own */
	char *domain;
	unsigned line; /* as in base/resolve.h */
	bool look;     /* answer only when record and policy were looked at, whatever is known */
	/* the answer: */
	struct sts_policy *policy;   /* a reference; NULL: there is none */
	char id[STS_ID_SIZE];	     /* of the record that it came with */
	int64_t fetched_ms, ends_ms; /* wall clock */
	char record[STS_ID_SIZE];    /* id of the record as it is; "" */
	enum sts_outcome outcome;    /* of the last look */
	char *why;		     /* a clause; or NULL */
};

struct sts_ask *sts_ask_new(const char *domain, struct loop *reply_to, void *owner);
void sts_ask_free(struct sts_ask **);

const char *sts_outcome_word(enum sts_outcome);

#endif
