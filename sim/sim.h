/* sim.h - the front page of sim/: the scheduler of qmgr/, on one node or many, under a virtual clock.
 *
 *	scenario --> [ arrivals ] --> [ stage: qmgr and what surrounds it ] --> tally --> report
 *	                                   ^ clock, seed                            --> JSON, picture
 *
 *	scenario.c        the file: sections of sluice.conf, and those of scenario_table.h
 *	scenario_check.c  faults that involve several values; scenario_nodes.c: of nodes
 *	spread.c          values with weights		dice.c	 chance from a seed
 *	arrivals.c        the messages, by time		trace.c	 the same from a log of the relay
 *	event.c           a line of that log
 *	learn.c           a scenario from it: sites and domains
 *	learn_host.c      likewise, a host		learn_write.c  its text
 *	learn_bucket.c    likewise, how much a site lets through
 *	world.c           the clock, and all loops turned by hand
 *	stage.c           one node: qmgr and, where there are several, cluster/; staging.c: begins, takes turns, ends
 *	model_spool.c     the queue; checks that nothing is lost or reported twice; model_inflow.c: whose mail is next
 *	model_disk.c      content without bytes; reports stored after a while
 *	model_dns.c       names
 *	model_host.c      hosts: times, limits, failures	bucket.c  what one lets through in a time
 *	model_client.c    connections, as smtpc has them: late binding
 *	model_agent.c     agents, as Postfix has them: early binding
 *	redis_server.c    Redis: bytes in, bytes out, each command in its turn
 *	redis_keys.c      what it keeps, and what the scripts of cluster/ do with it
 *	model_redis.c     likewise, of leases and rates: beside a real one in test_scripts.c
 *	tally.c           what is counted		watch.c	 what must always hold
 *	tally_site.c      likewise, of one site		tally_flow.c, tally_provider.c
 *	tally_nodes.c     likewise, of a cluster	watch_nodes.c  limits and outages, as it knows of them
 *	sim_run.c         a scenario with all its rows and bindings
 *	sim_report.c, sim_json.c, sim_plot.c		its results: text, JSON, picture
 *	sim_nodes.c       those of a cluster
 *	sim_periods.c     what came in a period, by flow_groups.c
 *	sim_flows_plot.c  another picture: who waited and why	plot.c  panels and axes
 *	sim_random.c      a scenario from a seed
 *	sweep.c           many destinations, beside Postfix and an oracle
 *	sweep_write.c     one of them from a seed	oracle.c  hosts whose state is known
 *	sweep_buckets.c   likewise, hosts that let so much through in a time
 *	calendar.c        outages and limits of a host by time
 *
 * Only the edges are modelled: windows, selection, destination database, retry, reports and
 * routing are the relay's own code, and so is all of cluster/ but its sockets; the same seed gives the same run.
 *
 * OWNERSHIP  sim_free() frees what sim_run() made; the scenario is the caller's.
 * THREAD     main, and no other: the clock of the program is set.
 * ERRORS     Faults of a scenario or trace are reported as "FILE:LINE: what is wrong". Faults
 *            of the scheduler that a run finds are in its tally.
 * SEE        sluice-sim(5); tests/sim/README.md.
 */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include "sim/tally.h"

struct sim_run {
	const struct scenario_row *row; /* or NULL: the scenario has none */
	bool early;
	struct tally *tally;
};

struct sim {
	const struct scenario *scenario;
	uint64_t seed;
	int n;
	struct sim_run *run; /* early before late, row by row */
};

struct sim *sim_run(struct scenario *, uint64_t seed, const char *only_row, struct buf *errors);
/* only_row: the title of the one row to run, or NULL. NULL: errors says why. */

void sim_free(struct sim **);
int64_t sim_faults(const struct sim *);

void sim_report(struct sim *, struct buf *to);
void sim_json(struct sim *, struct buf *to);	   /* an object a line */
void sim_plot(const struct sim *, struct buf *to); /* SVG; of one row */

void sim_random(uint64_t seed, struct buf *to);
/* The text of a small scenario. */

#endif
