/* trouble.h - what the log is told of failures that come again.
 *
 *	failed, up, failed, (silence, however often it comes and goes), up   when it has worked for a while
 *
 * A failure is told once, until it has worked for TROUBLE_STEADY_MS. Where it fails again before, for the same reason, that is told
 * once more, since the last word was "up"; and then no more, and neither is "up".
 *
 * OWNERSHIP  The caller's; trouble_fini().
 * THREAD     That of its owner. Times are its loop's clock, in ms.
 * ERRORS     None.
 */
#ifndef REPLICA_TROUBLE_H
#define REPLICA_TROUBLE_H

#include <stdbool.h>
#include <stdint.h>

enum { TROUBLE_STEADY_MS = 10000 };

struct trouble {
	char *why; /* the last failure that was told, until it has worked for a while; or NULL */
	int64_t up_ms; /* since when it works after that; 0: it does not */
	bool again;    /* it has failed again before that while was over */
};

/* Each says whether it is to be logged. */
bool trouble_failed(struct trouble *,
		    const char *why); /* "": a failure that somebody else tells of */
bool trouble_up(struct trouble *, int64_t now_ms);
bool trouble_over(struct trouble *, int64_t now_ms); /* it still works: is it "up" only now? */

void trouble_fini(struct trouble *);

#endif
