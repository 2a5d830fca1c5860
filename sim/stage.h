/* stage.h - what surrounds the scheduler of one node in a simulation: spool, names, connections, the cluster.
 *
 *	 arrivals --> [ model_spool ] -- SPOOL_ARRIVAL --> +------+ -- RESOLVE_ASK --> [ model_dns ]
 *	                   ^                               | qmgr |
 *	                   +---- verdicts, releases ------ +------+ -- CONNECTION_OPEN, DELIVERY_GIVE
 *	                                                    |    |                |
 *	      [ cluster/ ] <-- facts, leases, reserves -----+    |                |
 *	          |                      bound early: [ model_agent ]   [ model_client ]
 *	          v                                              |                |
 *	   [ redis_server ]                                      +--> [ model_host ]
 *
 * The world (world.h) turns the loops, and has the clock.
 *
 * OWNERSHIP  The world's; staging.h makes it, and turns its loops.
 * THREAD     main.
 * ERRORS     What must never be is noted in the tally as a fault.
 */
#ifndef SIM_STAGE_H
#define SIM_STAGE_H

#include "cluster/wire.h"
#include "qmgr/qmgr.h"
#include "sim/world.h"

struct stage {
	struct world *world;
	const struct scenario *scenario;
	const struct arrivals *arrivals; /* this node's */
	int number;
	uint64_t seed;
	bool early;
	struct conf *conf;   /* the scenario's, with the name of the node */
	struct list touched; /* in the world's */
	struct timer wake;   /* when a loop has one */
	struct qmgr *q;
	struct cluster *cluster; /* or NULL */
	struct wire_far far;
	struct timer join;     /* nodes are not started all at once */
	struct timer operator; /* what the scenario suspends next */
	int nsuspended;	       /* of that it has done */
	struct tally *tally;
	struct model_spool *spool;
	struct client *clients; /* of model_client, by number */
	struct list cached;	/* of model_agent: connections kept for the next */
	struct list questions, stores, agents;
	int agents_busy, agents_made; /* an agent that has been started stays */
	int64_t agent_made_us;	      /* when the latest is there */
	struct dice dice;	      /* of the agents */
	int64_t unwatched;	      /* steps since everything was counted again */
	const char **fed;	      /* sites that feedback is on its way to */
	int nfed, fed_cap;
	uint64_t knows; /* a bit for each host with outages: it is out */
};

void stage_touch(struct stage *);
/* Something is about to come to its loops: they run when what happens now has happened. */

void stage_post(struct stage *, struct note *); /* to qmgr */
void stage_feed(struct stage *, const char *site);
/* The note that was just posted is a feedback on this site: look at its window afterwards. */

static inline void stage_after(struct stage *st, struct timer *t, int64_t delay_us)
{
	world_after(st->world, t, delay_us);
}

static inline int64_t stage_us(int64_t ms)
{
	return ms * 1000;
}

/* The models. */
struct model_spool *model_spool_new(struct stage *);
void model_spool_free(struct model_spool **);
void model_spool_note(void *stage, struct note *);
bool model_spool_done(const struct model_spool *); /* nothing is left that will ever be tried */
int64_t model_spool_active(const struct model_spool *); /* messages with qmgr */
int64_t model_spool_tried(struct model_spool *, uint64_t id);
/* A delivery of this message begins: how old it is, in ms; -1: another one has before. */

void model_spool_end(struct model_spool *); /* the run is over: what is left is counted */

struct content_file;
struct spool_store;
struct content_file *model_disk_blank(void); /* a header, and a hole behind it */
void model_disk_store(struct stage *, struct spool_store *);
void model_disk_fini(struct stage *);

void model_dns_note(void *stage, struct note *);
void model_dns_fini(struct stage *);

void model_client_note(void *stage, int worker, struct note *);
void model_client_fini(struct stage *);

void model_agent_bind(void *stage, struct peer *);
void model_agent_fini(struct stage *);

#endif
