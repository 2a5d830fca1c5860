/* shares_core.h - what the tables of leases and of reservations have in common; for cluster/ alone.
 *
 * OWNERSHIP  Embedded in struct shares; the tables own their rows.
 * THREAD     The cluster's.
 * ERRORS     None.
 */
#ifndef CLUSTER_SHARES_CORE_H
#define CLUSTER_SHARES_CORE_H

#include "base/keyed_hash.h"
#include "cluster/shares.h"

enum {
	SHARES_LOOK_MS = 250,  /* what becomes of a lease while Redis is away */
	SHARES_REST_MS = 1000, /* after an answer that was an error */
};

#define SHARES_NUMBER_MAX ((int64_t)1 << 53) /* beyond that Redis' scripts do not count */

struct lease_row;
struct reserve_row;

struct shares {
	struct loop *loop;
	struct link *link;
	char *node;
	struct loop *watcher; /* or NULL */
	const struct nodes *seen;
	int64_t parts; /* said last */
	int64_t since_ms; /* steady clock: of the link's state, or of the first good answer after errors */
	bool stopped;
	bool refused; /* the last answer was an error */
	struct link_script lease_script, reserve_script;
	struct lease_row *lease; /* hash tables (uthash) */
	struct reserve_row *reserve;
};

int64_t shares_nodes(const struct shares *); /* that share, as was seen last: at least 1 */
bool shares_away(const struct shares *);
void shares_answered(struct shares *, bool good); /* of any script; the link is there */
bool shares_numbers(const redisReply *, int n, int64_t to[]);
/* A script's answer; false: an error, or something else than numbers from 0 on. */

/* lease_table.c */

void lease_table_take(struct shares *, struct sharing_need *);
void lease_table_look(struct shares *); /* the link is there, or away */
void lease_table_free(struct shares *);

/* reserve_table.c */

void reserve_table_want(struct shares *, struct sharing_want *);
void reserve_table_spent(struct shares *, struct sharing_spent *);
void reserve_table_look(struct shares *);
void reserve_table_free(struct shares *);

#endif
