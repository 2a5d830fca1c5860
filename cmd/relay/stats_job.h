/* stats_job.h - one `sluice stats` command, as the relay carries it out: after a glance at the scheduler.
 *
 * OWNERSHIP  The job goes with its request.
 * THREAD     Main.
 */
#ifndef CMD_RELAY_STATS_JOB_H
#define CMD_RELAY_STATS_JOB_H

#include "cmd/control/control.h"

struct server;

void stats_job_start(struct server *, struct request *);
/* The words of the request are "stats", and perhaps "--json" or "--all". */

#endif
