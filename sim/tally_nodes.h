/* tally_nodes.h - what is counted of a cluster: operations on Redis, limits, outages.
 *
 * From the scenario's `settle` on.
 *
 * OWNERSHIP  Embedded in struct tally.
 * THREAD     main.
 * ERRORS     None.
 */
#ifndef SIM_TALLY_NODES_H
#define SIM_TALLY_NODES_H

#include <stdbool.h>
#include <stdint.h>

/* X(kind, its name) */
#define REDIS_OPS(X)                                                                               \
	X(LEASE, "lease")                                                                          \
	X(RESERVE, "reserve")                                                                      \
	X(FACT, "fact")                                                                            \
	X(PROBE, "probe")                                                                          \
	X(READ, "read")                                                                            \
	X(BEAT, "heartbeat")                                                                       \
	X(LOOK, "look")                                                                            \
	X(PING, "ping")                                                                            \
	X(DELIVERY, "delivery")                                                                    \
	X(OTHER, "other")

enum redis_op {
#define X(kind, ...) REDIS_##kind,
	REDIS_OPS(X)
#undef X
		REDIS_OP_COUNT
};

const char *redis_op_name(enum redis_op);

/* A host with a limit or outages. */
struct tally_host {
	const char *name; /* the scenario's */
	int64_t limit;	  /* 0: none */
	bool own;	  /* of a transport that is not the first */
	int most;	  /* connections at any time */
	int64_t samples;  /* while mail waited for it, */
	double open;	  /* the sum of its connections then */
	int64_t turned_away, tried_out;
	int knew;				  /* nodes that had it for out at once, at most */
	int64_t out_ms, first_out_ms, all_out_ms; /* 0: never */
	int64_t back_ms, first_back_ms, all_back_ms;
};

struct tally_nodes {
	int nodes; /* 0: there is no cluster */
	int64_t ops[REDIS_OP_COUNT];
	double busy_us[REDIS_OP_COUNT];
	int64_t waits;	/* commands that waited for others; */
	double wait_us; /* all together */
	int64_t wait_most_us;
	int64_t given_up;	       /* times that a node had no answer in time */
	int64_t began_ms, done_before; /* counting; messages */
	int nhost;
	struct tally_host *host;
};

struct tally;

int64_t tally_ops(const struct tally_nodes *); /* all, deliveries too */
double tally_busy(const struct tally *);       /* the share of Redis' time, all */
double tally_seconds(const struct tally *);    /* that were counted */
double tally_messages(const struct tally *);   /* done in that time */
double tally_over(const struct tally_nodes *); /* most connections beyond a limit, in parts of it */
double tally_used(
	const struct tally_nodes *); /* mean of limits while mail waited; 1: all; 0: none waited */
void tally_rates(const struct tally *, double *mean,
		 double *worst); /* error, in parts of the rate */

#endif
