/* report_rate.h - how many reports may go to one address, and to all, in a time.
 *
 * Who sends mail to many recipients that are not there, under another's address, has us send that one the
 * reports. So they are counted in windows of the configured length; what comes beyond the limit waits for
 * the next window, with its message.
 *
 * Addresses are counted in slots that they are spread over by a keyed hash: two that share a slot share
 * its limit, for one window, and nobody can choose which.
 *
 * Numbers in, numbers out.
 *
 * OWNERSHIP  Embedded in struct qmgr.
 * THREAD     qmgr.
 */
#ifndef QMGR_REPORT_RATE_H
#define QMGR_REPORT_RATE_H

#include "base/conf.h"

enum { REPORT_RATE_SLOTS = 4096 };

struct report_window {
	int64_t began_ms; /* steady clock: where it ends, the rate of now says */
	bool begun;
	int64_t n;
};

struct report_rate {
	struct report_window all, to[REPORT_RATE_SLOTS];
	int64_t said_ms; /* steady clock: when it was last logged that there is a limit; 0: never */
};

int64_t report_rate_take(struct report_rate *, const struct conf_queue *, const char *to,
			 int64_t now_ms);
/* Count a report to this address. Returns 0; or how many milliseconds it has to wait, and then it is not
 * counted. All spellings of an address are one, as in name_key.h. */

bool report_rate_has_room(struct report_rate *, const struct conf_queue *, const char *to,
			  int64_t now_ms);
/* Would it have to wait? It is not counted. */

bool report_rate_tell(struct report_rate *, int64_t now_ms);
/* Should it be logged that one waits? Once a minute. */

#endif
