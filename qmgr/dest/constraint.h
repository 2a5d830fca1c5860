/* constraint.h - what can hold mail back: one row each, for whoever does something about it, and whoever tells of it.
 *
 * A row has the name that the log, `sluice explain`, /metrics and the manual use; what it counts; who sees to it;
 * and what is said about it to people. What a site's row allows now, and when that passes, site_limits.h finds.
 *
 * THREAD     Any.
 * SEE        sluice(8), "What holds mail back": lint compares the names there with these.
 */
#ifndef QMGR_DEST_CONSTRAINT_H
#define QMGR_DEST_CONSTRAINT_H

#include <stdbool.h>

enum constraint {
	CONSTRAINT_REPORTING,
	CONSTRAINT_CANCELLED,
	CONSTRAINT_MEMORY,
	CONSTRAINT_LOOKUP,
	CONSTRAINT_DNS,
	CONSTRAINT_SENDING,
	CONSTRAINT_CONNECTING,
	CONSTRAINT_SUSPENDED,
	CONSTRAINT_DEAD,
	CONSTRAINT_OUT,
	CONSTRAINT_PACE,
	CONSTRAINT_RATE,
	CONSTRAINT_RATE_DELAY,
	CONSTRAINT_PROVIDER_RATE,
	CONSTRAINT_SOURCE_RATE,
	CONSTRAINT_FLOW_RATE,
	CONSTRAINT_WINDOW,
	CONSTRAINT_SHARE,
	CONSTRAINT_SILENT,
	CONSTRAINT_PROVIDER_CONNECTION_LIMIT,
	CONSTRAINT_CONNECTION_LIMIT,
	CONSTRAINT_UNREADY_LIMIT,
	CONSTRAINT_HOST_CONNECTION_LIMIT,
	CONSTRAINT_HOST_PAUSE,
	CONSTRAINT_ORDER,
	CONSTRAINT_IDLE,
	CONSTRAINT_COUNT
};

struct constraint_row {
	const char *name;
	const char *counts; /* what its limit is a number of, in the singular; NULL: it has none */
	const char *
		why; /* a sentence: %s is that number with what it counts, %a "is" or "are", %p the pace of the site */
	const char *relief; /* what lets it go */
	const char *advice; /* for an active queue that it fills up; NULL: as for any other */
	bool in_turn; /* of a site: seen to by the dispatcher, when it is the site's turn; else only an event ends it */
	bool cites; /* the sentence ends with what the host said, or how it failed */
};

const struct constraint_row *constraint_row(enum constraint);
const char *constraint_name(enum constraint);

#endif
