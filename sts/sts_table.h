/* sts_table.h - what is known about domains, and what is being looked up.
 *
 * Two kinds, each with a bound of its own, so that domains without a policy never cost one: those with a
 * policy, by number and by bytes, and the others. Beyond a bound the one goes that was asked for longest ago.
 *
 * OWNERSHIP  The table owns its domains; one that is being looked at stays.
 * THREAD     sts.
 * STATES     STS_LOOKS: of the look at a domain. sts_domain_move() is the one mover.
 */
#ifndef STS_STS_TABLE_H
#define STS_STS_TABLE_H

#include "base/keyed_hash.h"
#include "base/list.h"
#include "base/sts_ask.h"

enum {
	STS_POLICIES_MAX = 10000,
	STS_POLICY_BYTES_MAX = 32 << 20,
	STS_WITHOUT_MAX = 50000,
};

#define STS_TO(look) (1u << STS_LOOK_##look)

/* X(look, states that may follow) */
#define STS_LOOKS(X)                                                                               \
	X(NONE, STS_TO(RECORD))                                                                    \
	X(RECORD, STS_TO(ADDRESS) | STS_TO(LATE) | STS_TO(NONE)) /* dns is asked for it */         \
	X(ADDRESS, STS_TO(QUEUED) | STS_TO(LATE) | STS_TO(NONE)) /* and for that */                \
	X(QUEUED, STS_TO(FETCHING) | STS_TO(NONE))		 /* others are being fetched */    \
	X(FETCHING, STS_TO(NONE))                                                                  \
	X(LATE, STS_TO(NONE)) /* it is over, but dns still owes an answer */

enum sts_look {
#define X(look, ...) STS_LOOK_##look,
	STS_LOOKS(X)
#undef X
};

struct sts_domain {
	UT_hash_handle hh;
	char *name; /* lower case, ASCII */
	struct sts *sts;
	enum sts_look look;
	struct sts_policy *policy;   /* or NULL */
	size_t bytes;		     /* of that */
	char id[STS_ID_SIZE];	     /* of the record that it came with */
	int64_t fetched_ms, ends_ms; /* wall clock: likewise */
	bool asked;		     /* for mail, since it was fetched */
	char record[STS_ID_SIZE];    /* id, as of the last look */
	enum sts_outcome outcome;    /* likewise */
	char *why;		     /* likewise; or NULL */
	int64_t look_ms;	     /* steady clock: not looked at before */
	struct note *waiting;	     /* struct sts_ask */
	char *at;		     /* QUEUED: where its HTTPS host is */
	struct https_request *fetch; /* FETCHING */
	struct timer limit;	     /* of the look */
	struct timer slow;	     /* FETCHING, and not among the slow ones yet */
	struct list in_use;	     /* of its kind, oldest first */
	struct list in_queue;	     /* QUEUED; or FETCHING, among the slow ones */
};

struct sts_table {
	struct sts_domain *all;
	struct list with, without; /* struct sts_domain */
	int nwith, nwithout;
	size_t bytes;
};

void sts_table_init(struct sts_table *);
void sts_table_fini(struct sts_table *); /* no look is under way */

struct sts_domain *sts_table_get(struct sts_table *, const char *name);
/* The one of that name, made where there is none, as the newest of its kind. */

void sts_table_set(struct sts_table *, struct sts_domain *, struct sts_policy *);
/* The domain has this policy, whose reference is taken; NULL: none any more. */

void sts_table_trim(struct sts_table *);
/* Keep to the bounds. Any domain that is at rest may be gone afterwards. */

void sts_domain_move(struct sts_domain *, enum sts_look);

#endif
