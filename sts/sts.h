/* sts.h - the front page of sts/: which MTA-STS policy a domain has.
 *
 *	qmgr                        the thread "sts"                     dns, the domain's HTTPS host
 *
 *	STS_ASK ----> [ table ] -- known --------------+
 *	                  | not known, or due          v
 *	                  +--> [ look ] ------> STS_ANSWER
 *	                         |  ^
 *	        _mta-sts.DOMAIN TXT |  --> an id that is new?
 *	        mta-sts.DOMAIN's addresses  --> https://mta-sts.DOMAIN/.well-known/mta-sts.txt
 *
 *	sts.c		the thread, its notes, what is kept over restarts
 *	sts_table.c	domains, bounded: those with a policy, and those without one for a while
 *	sts_look.c	one look at a domain: record, addresses, policy
 *	sts_text.c	the table as text
 *
 * A known policy is answered at once. It is refreshed in the background when its record was not looked up for
 * mta_sts_interval, and when a quarter of the policy's life is left. Mail waits only if nothing is
 * known, and at most for one look-up (mta_sts_timeout). A look-up that failed is not repeated for
 * mta_sts_interval, so that no host is asked more often, whatever its record says. A policy that lives shorter than
 * that is fetched again once it has ended: without it mail would go past it.
 *
 * The host of a policy is found by our own look-ups, so that the rules for addresses of mail hosts apply to it, too:
 * nobody can make us fetch from the networks behind us.
 *
 * OWNERSHIP  A question that is posted comes back by itself, or is freed by sts_free().
 * THREAD     sts_loop() is for posting from any thread; all else: main.
 * ERRORS     In the answers (base/sts_ask.h).
 * SEE        RFC 8461 3.3, 4, 10.2; base/https.h.
 */
#ifndef STS_STS_H
#define STS_STS_H

#include "base/conf.h"
#include "base/sts_ask.h"

struct sts;

struct sts_edges {
	void (*to_dns)(void *context, struct note *); /* struct resolve */
	void *context;
	struct loop *main;    /* gets STS_SAVE; NULL: nobody saves */
	struct loop *reports; /* gets TLS_RESULT; NULL: nobody counts */
};

struct sts *sts_new(struct conf *, const struct sts_edges *); /* takes a reference */
void sts_recall(struct sts *, const char *text);
/* Policies known before. Before sts_start(). */

void sts_start(struct sts *);
void sts_stop(struct sts *);
void sts_learnt(struct sts *, struct buf *to);
/* The same, to be kept. After sts_stop(). */

void sts_free(struct sts **);
/* Before the loops that wait for answers are freed, and when dns has stopped. */

struct loop *sts_loop(struct sts *);
void sts_reload(struct sts *, struct conf *); /* posts; takes a reference */

#endif
