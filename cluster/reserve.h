/* reserve.h - what this node may do of a rate that all nodes share: GCRA (base/gcra.h) in Redis.
 *
 *	destination_rate	deliveries evenly spaced. A node that has mail reserves as many as it may begin within
 *				the next RESERVE_AHEAD_MS, its part of them, and asks again in time: the sum over nodes
 *				is the rate, and right within one block.
 *	limits of logins...	as many at once as the rate says. What has passed is told, and the answer says how much
 *				all nodes together have had. Told at once when little room is left, else all
 *				RESERVE_AHEAD_MS: so nobody waits for an answer, and what all let pass beyond the limit
 *				is what has passed while one was under way.
 *
 * With more than ten nodes it is further ahead, RESERVE_EACH_MS for each: so one name costs Redis the same, however
 * many nodes use it.
 *
 * Where Redis has forgotten everything, it is told what all had had when this node heard of it last.
 *
 * Without an answer each node has rate / nodes of its own, and goes on counting what has passed.
 *
 * Numbers in, numbers out: no clock, no I/O. Times between this node and Redis are relative to the answer, so
 * that nobody's clock need be right.
 *
 * OWNERSHIP  Embedded, in the cluster's table and in the simulation's.
 * THREAD     The cluster's.
 * ERRORS     None; misuse asserts.
 * SEE        base/sharing.h.
 */
#ifndef CLUSTER_RESERVE_H
#define CLUSTER_RESERVE_H

#include "base/gcra.h"

enum {
	RESERVE_AHEAD_MS = 100,
	RESERVE_EACH_MS = 10,
	RESERVE_PARTS =
		32, /* such a part of the room that is left need not be told at once, all nodes' together */
	RESERVE_FORGET_MS =
		10000, /* of a name that nobody has used for so long, and has its whole burst again, nothing is kept */
};

struct reserve {
	struct conf_rate rate;
	struct gcra alone;	  /* steady clock: of the node's own part */
	int64_t wanted;		  /* ahead; 0: nobody waits for an answer */
	int64_t spent;		  /* passed, and not asked about */
	int64_t telling;	  /* in the ask under way, */
	bool looking, forgetting; /* likewise */
	bool look;	 /* what all have had is wanted, whether something was spent or not */
	bool forget;	 /* the next ask begins anew */
	bool asked;	 /* an ask is under way */
	int64_t room_us; /* of the burst, in the last answer; 0: none is known */
	int64_t due_us;	 /* steady clock: of what was spent, unless the room is small */
	int64_t used_us; /* steady clock: of the last event */
	int64_t next_us; /* steady clock: the GCRA of all in the last answer, */
	int64_t since;	 /* of the data that began then */
};

/* The arguments of the script. */
struct reserve_ask {
	int64_t interval_us, spent, want, ahead_us, most_us;
	bool forget;
	int64_t since, known_us; /* of data that began then all had had so much, from now */
};

/* Its answer; times from the moment at which it was computed. */
struct reserve_answer {
	int64_t granted, from_us, next_us, since;
};

/* The reservation that was wanted. */
struct reserve_grant {
	int64_t n;	  /* granted; may be 0 */
	int64_t from_us;  /* steady clock: the first may begin */
	int64_t again_us; /* steady clock: asking again is worth it */
};

void reserve_want(struct reserve *, const struct conf_rate *, int64_t n, int64_t now_us);
/* Deliveries ahead. One that waits for its answer wants nothing else before. */

void reserve_spend(struct reserve *, const struct conf_rate *, int64_t n, int64_t now_us);
/* n 0: nothing was, but what all have had is wanted. */

void reserve_forget(struct reserve *, int64_t now_us); /* what all have counted */

bool reserve_ask(struct reserve *, int64_t nodes, int64_t now_us, struct reserve_ask *);
/* True: this is to be asked now. Until the answer, or reserve_missed(), nothing else is. */

void reserve_answered(struct reserve *, const struct reserve_answer *, int64_t nodes,
		      int64_t now_us, struct reserve_grant *);
/* Where something was wanted this is granted. What was spent since the ask comes on top of next_us. */

int64_t reserve_next_us(const struct reserve *, const struct reserve_answer *, int64_t now_us);
/* Steady clock: the GCRA of all nodes with what this one has spent since. After reserve_answered(). */

void reserve_missed(
	struct reserve *); /* no answer comes: what it told, or wanted to know, is asked again */

bool reserve_alone(struct reserve *, int64_t nodes, int64_t now_us, struct reserve_grant *);
/* Without Redis: what is wanted, of the node's own part. False: nothing is. */

bool reserve_over(const struct reserve *, int64_t now_us); /* it may be forgotten */

extern const char reserve_script[];
/* KEYS: of the name, since (link.h). ARGV: interval_us, spent, want, ahead_us, most_us, 1 to forget, since, known_us. Returns
 * granted, from_us, next_us, since. What makes no sense under its key counts as nothing. */

#endif
