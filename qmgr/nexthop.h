/* nexthop.h - from the next hop of a route to the hosts that serve it.
 *
 *	route + recipient -> key -> known and fresh: at once
 *	                         -> else: ask dns, once for all who wait
 *	answers -> site and hosts, or what failed -> who waits is the router's to see to (router.h)
 *
 * Where no transport is named for the mail, the provider of the hosts may want another: then it is known as elsewhere, and
 * the router asks once more, with the port and the policy of that one.
 *
 * What waits goes by what was found when it came, and follows where a later look-up leads. What was found is asked for once more
 * when it is served NEXTHOP_RENEW_MS later; from NEXTHOP_OLD_MS on it waits for the answer.
 *
 * OWNERSHIP  The thread's table; collected when no peer refers to it, nobody waits for it, and its answer
 *            is stale. Has a reference on its site.
 * THREAD     qmgr.
 * STATES     asking (answers outstanding); known until fresh_until_ms; stale.
 * ERRORS     A failure is a verdict, which the recipients that wait get; the next who wants it asks again.
 */
#ifndef QMGR_NEXTHOP_H
#define QMGR_NEXTHOP_H

#include "qmgr/dest/site.h"
#include "qmgr/message.h"
#include "qmgr/route/nexthop_lookup.h"

enum { NEXTHOP_RENEW_MS = 10000, NEXTHOP_OLD_MS = 30000 };

enum { NEXTHOP_MAGIC = 0x4e785401 };

struct nexthop {
	unsigned magic;
	char *key;
	char *tls;	 /* policy of transport, route and the recipient's domain */
	char *site_name; /* given by the configuration, or NULL: from the hosts found */
	char *relays;	 /* what tells it from a site of the same name; NULL: by MX */
	enum envelope_tls wish;
	char *logins; /* what stands behind either, or NULL */
	char *source; /* where its connections come from, behind all that; or NULL: the system chooses */
	struct transport *transport;
	struct qmgr *qmgr;
	struct way way;		      /* to the site, once that is known */
	struct nexthop_lookup lookup; /* of its hosts: idle once they are known */
	struct message *asked_by;     /* asking, or NULL: for mail that waits at its site, */
	int64_t asked_ms;	      /* since when, steady clock, */
	struct list in_brisk;	      /* and in the order of qmgr->brisk: in none where it lags */
	bool open;		      /* no transport is named for such mail */
	struct transport *elsewhere;  /* known: its provider wants this one; or NULL */
	bool by_mx;		      /* MTA-STS may say something of it */
	bool overtaken;		      /* asking: there was a reload since */
	bool heard;		      /* answered: a name server was, in the last look-up */
	bool lacks;		/* known: none of the hosts is of a family that the source has */
	int64_t fresh_until_ms; /* steady clock */
	int64_t known_ms;	/* steady clock: its hosts were found last */
	struct waiting_recipient *waiting;
	size_t nwaiting;
	UT_hash_handle hh;
};

static inline struct nexthop *nexthop_of_way(struct way *way)
{
	return (struct nexthop *)((char *)way - offsetof(struct nexthop, way));
}

static inline struct site *nexthop_site(const struct nexthop *n) /* NULL until known */
{
	return n->way.queue ? site_of_queue(n->way.queue) : NULL;
}

char *nexthop_target(const struct nexthop *);
/* The domain that it is for, or its relays as they are written. The caller's to free(). */

bool nexthop_is_for(const struct nexthop *, const char *domain);

struct nexthop *nexthop_of(struct job *, uint32_t recipient, const struct route *);
/* The one that its route, as router_route() says, points to, from the source that its flow has there now. */

bool nexthop_moves(struct job *, uint32_t recipient, const struct route *, const struct site *);
/* The recipient is to go from another source than that of the site: one that is not refused or missing there, unless its own is not among
 * those of its flow any more. */

bool nexthop_has_left(struct job *, uint32_t recipient, const struct route *, const struct site *);
/* Likewise; or from the source of the site the recipient is to go elsewhere, or to where nobody knows yet. */

bool nexthop_known(const struct nexthop *); /* its site is, or elsewhere, and fresh */

int64_t nexthop_age_ms(const struct nexthop *); /* of what is known of it */
bool nexthop_to_renew(const struct nexthop *);
/* That is so old that it is to be asked for, and was not lately. */

void nexthop_forget_age(struct nexthop *);
/* The next hop is looked up again before anything goes there: what is known may be wrong. */

void nexthop_ask(struct nexthop *, const struct job *, uint32_t recipient, const struct route *);
/* Begin a look-up for mail of this job; what for is taken from the recipient's route. */

void nexthop_wait(struct nexthop *, struct job *, uint32_t recipient);
/* For the answer. */

void nexthop_enter(struct nexthop *, struct job *, uint32_t recipient);
/* The next hop is known, and not elsewhere: the recipient has its entry. */

struct nexthop *nexthop_answered(struct resolve *, struct verdict **why);
struct nexthop *nexthop_sts_answered(struct sts_ask *, struct verdict **why);
/* The one that was asked about, if all that it asked is answered: then those who wait for it are to be
 * taken. NULL: something is still to come. why: what failed, the caller's; NULL: it is known. Of what failed for now the site stays; there
 * is none any more where that is final, or where hosts are left out for what they must prove. */

size_t nexthop_take_waiting(struct nexthop *, struct waiting_recipient **);
/* Who has waited, in order; the caller's to free(). */

bool nexthop_leads_on(struct nexthop *, const struct waiting_recipient *, const struct route *);
/* For this recipient another source is to be tried, or another transport, or its way is another since a reload. */

void nexthop_free(struct nexthop *);

#endif
