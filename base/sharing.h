/* sharing.h - the contract between who keeps limits and who shares them among the nodes of a cluster.
 *
 *	qmgr     -- SHARING_WANT: deliveries to a destination ----> [ cluster ] --> the same, granted
 *	qmgr     -- SHARING_NEED: connections to a host ---------->             --> SHARING_LEASED
 *	limiter  -- SHARING_SPENT: a message has passed ---------->             --> SHARING_TOTAL
 *	limiter  <-- SHARING_PARTS: by how many its limits are to be divided ---+
 *
 * Whoever asks goes on with what it has, and never waits: an answer comes soon, whether Redis is there or not. Away
 * from Redis the cluster answers with this node's part.
 *
 * A lease is lowered by whoever holds it and by nobody else: the cluster says how many it had better have,
 * and the holder, when its connections have ended, how many it still counts as its own. So none is given to
 * another node while it is in use.
 *
 * OWNERSHIP  Each note is the receiver's from the post on, to free(). SHARING_WANT comes back as it was.
 * THREAD     Any.
 * ERRORS     None.
 */
#ifndef BASE_SHARING_H
#define BASE_SHARING_H

#include "base/conf.h"
#include "base/loop.h"

enum sharing_note {
	SHARING_WANT = NOTES_FROM(NOTES_OF_SHARING),
	SHARING_NEED,
	SHARING_LEASED,
	SHARING_SPENT,
	SHARING_TOTAL,
	SHARING_PARTS,
};

/* So many deliveries to a destination are to begin, evenly spaced by its rate. */
struct sharing_want {
	struct note note;
	struct loop *reply_to;
	struct conf_rate rate;
	int64_t n;	  /* at least 1; in the answer: granted, may be 0 */
	int64_t from_us;  /* steady clock: the first of them may begin; */
	int64_t again_us; /* if none was granted: asking is worth it again */
	char key[];
};

/* The needs of a holder of leases. */
struct sharing_need {
	struct note note;
	struct loop *reply_to;
	int64_t limit; /* of all nodes together */
	int64_t hold;  /* at most so many are in use until the next SHARING_LEASED */
	int64_t want;  /* so many it would use */
	uint64_t
		heard; /* the number of the last SHARING_LEASED of this key that has come; 0: none */
	char key[];
};

struct sharing_leased {
	struct note note;
	uint64_t number; /* from 1 */
	int64_t allowed; /* it may use so many */
	int64_t fair;	 /* and had better come down to so many, since others wait */
	int64_t others;	 /* other nodes have so many */
	bool scarce; /* there is not one for each that wants some: what is idle is to go back at once */
	char key[];
};

/* Events that have passed under a limit. */
struct sharing_spent {
	struct note note;
	struct loop *reply_to;
	struct conf_rate rate;
	int64_t n;     /* 0: none, but what all have had is wanted */
	bool forget;   /* what all nodes have counted */
	uint64_t told; /* with these, by whoever counts */
	char key[];
};

struct sharing_total {
	struct note note;
	int64_t next_us;  /* steady clock: of the GCRA of all nodes together, */
	uint64_t through; /* with so many of what was told */
	char key[];
};

struct sharing_parts {
	struct note note;
	int64_t parts; /* 1: what is counted is what all have counted */
};

struct sharing_want *sharing_want_new(struct loop *reply_to, const char *key,
				      const struct conf_rate *, int64_t n);
struct sharing_need *sharing_need_new(struct loop *reply_to, const char *key);
struct sharing_leased *sharing_leased_new(const char *key);
struct sharing_spent *sharing_spent_new(struct loop *reply_to, const char *key,
					const struct conf_rate *);
struct sharing_total *sharing_total_new(const char *key);

#endif
