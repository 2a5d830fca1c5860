/* milter_job.h - one `sluice milter` command, as the relay carries it out: each filter is tried, then told of.
 *
 * OWNERSHIP  The job goes with its request.
 * THREAD     Main.
 * ERRORS     Said to the client.
 */
#ifndef CMD_CONTROL_MILTER_JOB_H
#define CMD_CONTROL_MILTER_JOB_H

#include "base/loop.h"
#include "cmd/control/control.h"

struct conf;

void milter_job_start(struct request *, struct loop *, struct conf *);
/* The words are "milter", "list", "show" or "--json", and perhaps the name of one. */

#endif
