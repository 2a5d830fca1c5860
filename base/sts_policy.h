/* sts_policy.h - the two texts of MTA-STS: the TXT record, and the policy.
 *
 *	_mta-sts.a.test TXT "v=STSv1; id=20260101"
 *
 *	version: STSv1
 *	mode: enforce		enforce | testing | none
 *	max_age: 604800		seconds
 *	mx: mx.a.test
 *	mx: *.b.test		one label in the place of the star
 *
 * Unknown fields are passed over, and of a field that may be there once the first counts. A policy that can
 * be kept for longer than a year is kept for a year.
 *
 * OWNERSHIP  Counted: sts_policy_parse() gives one reference. A policy never changes.
 * THREAD     Any; the count is atomic.
 * ERRORS     NULL, and why: a clause.
 * SEE        RFC 8461 3.1, 3.2, 4.1.
 */
#ifndef BASE_STS_POLICY_H
#define BASE_STS_POLICY_H

#include "base/buf.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	STS_ID_SIZE = 33,	  /* 32 letters and digits, and their NUL */
	STS_MX_MAX = 200,	  /* patterns of one policy */
	STS_MAX_AGE_S = 31557600, /* RFC 8461 3.2 */
};

/* X(mode, its word) */
#define STS_MODES(X)                                                                               \
	X(NONE, "none")                                                                            \
	X(TESTING, "testing")                                                                      \
	X(ENFORCE, "enforce")

enum sts_mode {
#define X(mode, word) STS_##mode,
	STS_MODES(X)
#undef X
};

struct sts_policy {
	atomic_int refs;
	enum sts_mode mode;
	int64_t max_age_s;
	int nmx;
	char **mx; /* lower case */
};

struct sts_policy *sts_policy_parse(const char *text, size_t len, struct buf *why);
struct sts_policy *sts_policy_ref(struct sts_policy *); /* NULL stays NULL */
void sts_policy_unref(struct sts_policy *);		/* NULL is allowed */

bool sts_policy_has(const struct sts_policy *, const char *host);
/* Is it one of the mail hosts that it names? */

void sts_policy_write(const struct sts_policy *, struct buf *to);
/* As it could be parsed again: what is known of it, no more. */

const char *sts_mode_word(enum sts_mode);

bool sts_record_parse(const char *txt, char id[STS_ID_SIZE]);
/* False: it is another kind of record. An id that is none leaves id empty. */

#endif
