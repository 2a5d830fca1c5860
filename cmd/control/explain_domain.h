/* explain_domain.h - the mail in the queue for a domain, by reason: as sentences, or as JSON.
 *
 * A group holds the messages that are in the same queue and whose recipients there were told the
 * same; the one with most recipients comes first.
 *
 * THREAD     Any.
 * ERRORS     None.
 */
#ifndef CMD_CONTROL_EXPLAIN_DOMAIN_H
#define CMD_CONTROL_EXPLAIN_DOMAIN_H

#include "base/buf.h"
#include "spool/spool.h"

void explain_domain_print(struct buf *to, const char *domain, const struct spool_command *listed,
			  bool json, int64_t now_ms);
/* Of messages that the scheduler works on it says nothing: those are its own to explain. */

void explain_domain_nothing(struct buf *to, const char *domain, bool json);
/* No mail for it is there at all. */

#endif
