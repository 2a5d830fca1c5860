/* explain_domain.h - the mail in the queue for a domain, by reason: as sentences, or as JSON.
 *
 * A group holds the messages that are in the same queue and whose recipients there were told the
 * same; the one with most recipients comes first. The messages come part by part, in order of their ids.
 *
 * OWNERSHIP  explain_domain_new() makes it.
 * THREAD     Any.
 * ERRORS     None.
 */
#ifndef CMD_CONTROL_EXPLAIN_DOMAIN_H
#define CMD_CONTROL_EXPLAIN_DOMAIN_H

#include "base/buf.h"
#include "spool/spool.h"

struct explain_domain;

struct explain_domain *explain_domain_new(const char *domain);
void explain_domain_free(struct explain_domain **); /* NULL is allowed */

void explain_domain_add(struct explain_domain *, const struct spool_command *listed);
/* Messages that were not added before. Of those that the scheduler works on it says nothing: they are its own to
 * explain. */

void explain_domain_cut(struct explain_domain *); /* there are more, which are not added */

void explain_domain_print(struct buf *to, struct explain_domain *, bool json, int64_t now_ms);

void explain_domain_nothing(struct buf *to, const char *domain, bool json);
/* No mail for it is there at all. */

#endif
