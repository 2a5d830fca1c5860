/* world.h - what the nodes of a simulation have in common: the clock, the hosts, Redis.
 *
 *	 arrivals -- dealt --> [ stage ] [ stage ] ... one a node
 *	                          |         |
 *	                          +----+----+
 *	                               +--> [ model_host ], [ redis_server ]
 *
 * There are no threads. The world turns the loops of qmgr and of cluster/ by hand until they have
 * nothing more to do, and then sets the clock to the next event: of the models, in microseconds, or a
 * timer of a loop.
 *
 * OWNERSHIP  world_init() to world_fini(), one at a time in a program: the clock is everybody's.
 * THREAD     main.
 * ERRORS     What must never be is noted in the tally as a fault.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "base/timer.h"
#include "sim/arrivals.h"
#include "sim/tally.h"

struct loop;
struct stage;

enum { WORLD_WATCHED_MAX = 64 };

struct world {
	const struct scenario *scenario;
	uint64_t seed;
	bool early;
	int64_t now_us; /* since the start */
	int64_t next_sample_us, sample_us;
	struct timers events; /* of the models: due_ms is in microseconds */
	struct timers wakes;  /* of nodes whose loops have a timer */
	struct list touched;  /* struct stage: something has come */
	struct model_hosts *hosts;
	struct redis_server *redis; /* NULL: one node, alone */
	struct loop *nobody;	    /* gets what is told to those who are not here; or NULL */
	int nwatched, watched[WORLD_WATCHED_MAX]; /* hosts with outages, by number */
	bool ended;				  /* what is closed now is so for that reason */
	struct tally *tally;
	int nstage;
	struct stage *stage;
	struct arrivals *dealt; /* to each; NULL: there is one */
};

void world_init(struct world *, const struct scenario *, const struct arrivals *, uint64_t seed,
		bool early, struct tally *);
void world_run(struct world *);
void world_fini(struct world *);

static inline void world_after(struct world *w, struct timer *t, int64_t delay_us)
{
	timer_start(&w->events, t, w->now_us + (delay_us > 0 ? delay_us : 0));
}

void world_rest(struct world *, int64_t time_ms);
/* Let time pass with nothing new to do. */

#endif
