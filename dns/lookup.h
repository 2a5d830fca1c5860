/* lookup.h - one struct resolve, from RESOLVE_ASK to RESOLVE_ANSWER.
 *
 *	RESOLVE_ASK --> TLSA, alias, TXT? -> one question --------------------> RESOLVE_ANSWER
 *	                   |
 *	                name or literal? --> MX question --> A and AAAA of all targets --> mx_hosts
 *	                   |  at once               RESOLVE_HOST begins here ^                |
 *	                   +-----------------------------------------------+      TLSA records of each host,
 *	                                                                   v      where they are wanted and count
 *	                                                        RESOLVE_ANSWER <--------------+
 *
 * STATES     A lookup waits for `waiting` answers; at none it is finished and gone.
 * OWNERSHIP  The lookup owns its resolve until it posts it back; lookups_free() frees both.
 * THREAD     dns.
 * ERRORS     As the failure in the answer; more than LOOKUPS_MAX at once get 4.4.3.
 */
#ifndef DNS_LOOKUP_H
#define DNS_LOOKUP_H

#include "base/conf.h"
#include "base/resolve.h"
#include "dns/ourself.h"
#include "dns/question.h"

enum { LOOKUPS_MAX = 100000 };

struct lookups;

struct lookups *lookups_new(struct questions *, const struct conf *, struct ourself *,
			    uint64_t seed);
/* Takes what we are over. The questions are only lent, and freed later than the lookups. */

void lookups_free(struct lookups **);

void lookups_reload(struct lookups *, const struct conf *, struct ourself *);
/* The same. Ourselves may have another name or address; lookups under way use what is new. */

void lookup_start(struct lookups *, struct resolve *);

#endif
