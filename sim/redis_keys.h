/* redis_keys.h - what Redis keeps for a cluster, and what its scripts do with it, in C.
 *
 * Of each script the same as its text in cluster/: leases and rates by model_redis.h, which
 * tests/unit/cluster/test_scripts.c holds beside a real one; facts, heartbeats and looks likewise.
 *
 * OWNERSHIP  redis_keys_new() to redis_keys_free().
 * THREAD     main.
 * ERRORS     A command that no node sends is refused.
 */
#ifndef SIM_REDIS_KEYS_H
#define SIM_REDIS_KEYS_H

#include "base/buf.h"
#include "sim/tally_nodes.h"

#include <stdbool.h>

enum { REDIS_ARGS_MAX = 64 };

/* One command; arguments end in 0. */
struct redis_command {
	int n;
	char *arg[REDIS_ARGS_MAX];
	int64_t now_us; /* wall clock, when it is carried out */
	int node;	/* who sends it */
};

struct redis_done {
	enum redis_op op;
	bool script;
	int64_t fields;	 /* looked at */
	char *published; /* to be freed; or NULL */
	const char *channel;
};

struct redis_keys;

struct redis_keys *redis_keys_new(int nodes);
void redis_keys_free(struct redis_keys **);

void redis_keys_do(struct redis_keys *, const struct redis_command *, struct buf *reply,
		   struct redis_done *);

#endif
