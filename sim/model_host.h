/* model_host.h - a host: how long it takes, how many it serves, how it fails.
 *
 *	attempt_start()
 *	    +-- outage, refused ----------------------------------> CAUSE_REFUSED, _CONNECT_TIMEOUT
 *	    v connect	outage of 421, too many in a time ----------> CAUSE_TOO_MANY
 *	    |		it wants nothing from our address ----------> CAUSE_BLOCKED
 *	  arrived -- served: connection_limit not reached -- greeting --> CAUSE_NONE: it is ready
 *	    |          ^
 *	    +-- waits in the backlog --------------------- too long ----> CAUSE_GREETING_TIMEOUT
 *	    |
 *	    +-- beyond both: 421 ---------------------------------------> CAUSE_TOO_MANY
 *	                     drop: knocks again until --------------------> CAUSE_CONNECT_TIMEOUT
 *	                     mute: the same; it believes itself connected > CAUSE_GREETING_TIMEOUT
 *
 * When an outage begins that is not silent, connections that are ready are lost.
 *
 * OWNERSHIP  An attempt lies in the object that connects. The stage owns the hosts.
 * THREAD     main.
 * ERRORS     None.
 */
#ifndef SIM_MODEL_HOST_H
#define SIM_MODEL_HOST_H

#include "base/address.h"
#include "sim/bucket.h"
#include "sim/stage.h"

enum { CAUSE_NONE = -1 };

enum attempt_state {
	ATTEMPT_NONE,
	ATTEMPT_CONNECTING,
	ATTEMPT_WAITING, /* in the backlog */
	ATTEMPT_KNOCKING,
	ATTEMPT_GREETED, /* served; on its way to being ready */
	ATTEMPT_READY,
};

struct source_bucket {
	char source[ADDRESS_WHERE_MAX];
	struct bucket bucket;
};

struct model_host {
	struct world *world;
	const struct scenario_host *is;
	struct dice dice;
	int serving;
	int nwaiting;
	struct list waiting;	      /* struct attempt */
	struct model_host *bucket_at; /* itself; or the first whose bucket has its name */
	int nbucket;
	struct source_bucket *bucket; /* of each address of ours; "": of all */
	struct bucket connections;    /* that it takes in a time */
	int64_t limit;		      /* of who connects; 0: none */
	bool own;		      /* their transport is not the first */
	int open, open_most;	      /* attempts, of all nodes */
	int64_t turned_away;
	int64_t wanted_ms; /* at this sample mail waited for it */
	int64_t tried_out; /* attempts in outages */
	char *key;	   /* what nodes call it, of one with outages; NULL: none has met it */
	int knowing;	   /* nodes that have it for out */
};

struct attempt {
	struct model_host *host;
	enum attempt_state state;
	int fate; /* enum cause when it has failed already and only the word of it is on its way */
	char source[ADDRESS_WHERE_MAX]; /* where it comes from; "": not said */
	int64_t began_us, deadline_us, gap_us, greeting_timeout_us;
	struct timer timer;
	struct list in_waiting;
	void (*ended)(void *owner, int cause);
	void (*lost)(struct attempt *); /* it was ready, and the host has gone; or NULL */
	void *owner;
};

struct model_hosts *model_hosts_new(struct world *);
void model_hosts_free(struct model_hosts **);
struct model_host *model_host_at(struct world *, const union address *); /* any port */
struct model_host *model_host_number(struct world *, int i);
int model_host_count(const struct world *);

void attempt_start(struct attempt *, struct model_host *, const struct conf_transport *);
void attempt_close(struct attempt *);
/* In any state: the connection, or what was to become one, is gone. */

bool attempt_stands(const struct attempt *);
/* TCP does, whatever comes of it. */

int64_t host_transaction_us(struct model_host *, uint32_t nrcpt, uint64_t size, double way);
/* How long it takes; way: the part of the distance that it waits for, which is none where it follows
 * another in a pipeline. */

bool host_breaks(struct model_host *);
/* Is the connection lost in this transaction? In a silent outage always; where others begin, all that
 * are ready are lost at once. */

struct verdict *host_verdict(struct model_host *, const char *source, int64_t age_ms);
/* On one recipient of a transaction that came to its end: from this address of ours, of a message so old. */

#endif
