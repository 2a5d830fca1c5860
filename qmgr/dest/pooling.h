/* pooling.h - what this node knows about hosts and what the others know, made one.
 *
 *	something about a host changed --> pooling_changed() --> once a wake-up: FACT_SEEN, its parts that are others now
 *	FACT_HEARD --> pooling_heard(): the parts that are newer --> the host, and its sites
 *	a probe is due --> pooling_may_probe() --> FACT_PROBE --> FACT_LEAVE
 *
 * What is measured with each message, speed and depth, is told when it has changed by half, and every
 * MEASURES_MS at most, not each time. Who serves a
 * host at the moment does not believe that it is out: another node may be refused for reasons of its own.
 *
 * A probe waits for leave, but no longer than LEAVE_PATIENCE_MS: no mail depends on another thread.
 *
 * Where there is no cluster none of it does anything.
 *
 * OWNERSHIP  struct host_pooling lies in the host. Takes the facts that it is given.
 * THREAD     qmgr.
 * ERRORS     A fact about a host that is not known and comes without its address is passed over.
 * SEE        base/fact.h; FINCH 2007.
 */
#ifndef QMGR_DEST_POOLING_H
#define QMGR_DEST_POOLING_H

#include "base/fact.h"
#include "qmgr/dest/destdb.h"

enum {
	MEASURES_MS = 5000,
	LEAVE_PATIENCE_MS = 2000,
	LEAVE_GOOD_MS = 5000,
	POOLING_HOSTS_MAX = 200000
};

void pooling_changed(struct destdb *, struct host *); /* and of its doubts */
void pooling_quiet(struct host *);		      /* as it is now, it is not to be told */
void pooling_forgotten(struct destdb *, struct host *, bool everywhere);
/* After host_forget(): the others are told that nothing is known now, or nothing at all. */

int pooling_doubts(const struct host *);	   /* of all nodes, as far as is known */
void pooling_tell(struct destdb *, struct host *); /* what has changed */
void pooling_flush(struct destdb *);		   /* the same of all */
void pooling_tell_all(struct destdb *);		   /* what this node has seen, once more */

bool pooling_may_probe(struct destdb *, struct host *);
/* False: leave has been asked for, and its sites are touched when it has come. */

void pooling_fini(struct host *);

unsigned pooling_merge(struct host *, const struct fact *);
/* A part that is newer is taken: a bit for each, 1 << enum fact_which. */

int64_t pooling_heard_age_ms(const struct destdb *, const struct host *, enum fact_which);
/* Since another node saw what is known of this part; -1: it is what this one saw, or nothing is known. */

void pooling_agree(struct host *, enum fact_which); /* as this part is now the others know it */

/* pooling_heard.c */

void pooling_heard(struct destdb *, struct fact *);
void pooling_leave(struct destdb *, struct fact_probe *);

#endif
