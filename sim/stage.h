/* stage.h - what surrounds the scheduler in a simulation: clock, spool, names, hosts, connections.
 *
 *	 arrivals --> [ model_spool ] -- SPOOL_ARRIVAL --> +------+ -- RESOLVE_ASK --> [ model_dns ]
 *	                   ^                               | qmgr |
 *	                   +---- verdicts, releases ------ +------+ -- CONNECTION_OPEN, DELIVERY_GIVE
 *	                                                      |                |
 *	                                 bound early: [ model_agent ]   [ model_client ]
 *	                                                      |                |
 *	                                                      +--> [ model_host ]
 *
 * There are no threads. The stage turns qmgr's loop by hand until it has nothing more to do, and
 * then sets the clock to the next event: of the models, in microseconds, or a timer of qmgr.
 *
 * OWNERSHIP  stage_init() to stage_fini(), one at a time in a program: the clock is everybody's.
 * THREAD     main.
 * ERRORS     What must never be is noted in the tally as a fault.
 */
#ifndef SIM_STAGE_H
#define SIM_STAGE_H

#include "base/timer.h"
#include "qmgr/qmgr.h"
#include "sim/arrivals.h"
#include "sim/tally.h"

struct stage {
	const struct scenario *scenario;
	const struct arrivals *arrivals;
	uint64_t seed;
	bool early;
	int64_t now_us; /* since the start */
	int64_t next_sample_us, sample_us;
	struct timers events; /* of the models: due_ms is in microseconds */
	struct qmgr *q;
	struct tally *tally;
	struct model_spool *spool;
	struct model_hosts *hosts;
	struct client *clients; /* of model_client, by number */
	struct list cached;	/* of model_agent: connections kept for the next */
	struct list questions, stores, agents;
	int agents_busy, agents_made; /* an agent that has been started stays */
	int64_t agent_made_us;	      /* when the latest is there */
	struct dice dice;	      /* of the agents */
	int64_t unwatched;	      /* steps since everything was counted again */
	const char **fed;	      /* sites that feedback is on its way to */
	int nfed, fed_cap;
};

void stage_init(struct stage *, const struct scenario *, const struct arrivals *, uint64_t seed,
		bool early, struct tally *);
void stage_run(struct stage *);
void stage_fini(struct stage *);

void stage_after(struct stage *, struct timer *, int64_t delay_us);
void stage_post(struct stage *, struct note *); /* to qmgr */
void stage_feed(struct stage *, const char *site);
/* What was just posted is a feedback on this site: look at its window afterwards. */

void stage_rest(struct stage *, int64_t time_ms);
/* Let time pass with nothing new to do. */

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
