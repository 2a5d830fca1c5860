/* sts_text.h - the known policies as text, kept over restarts.
 *
 *	domain a.test 20260101 1763800000000 1764400000000	id; fetched, ends: milliseconds since 1970
 *	version: STSv1						the policy, as sts_policy.h has it
 *	...
 *	(an empty line)
 *
 * THREAD     sts, or whoever has the table while it does not run.
 * ERRORS     What is no such block is passed over; a policy that has ended too.
 */
#ifndef STS_STS_TEXT_H
#define STS_STS_TEXT_H

#include "sts/sts_table.h"

void sts_text_write(const struct sts_table *, int64_t now_ms, struct buf *to); /* wall clock */

void sts_text_read(const char *text, int64_t now_ms,
		   struct sts_domain *(*domain_of)(void *owner, const char *name),
		   struct sts_table *, void *owner);
/* domain_of() makes the one of that name in the table. */

#endif
