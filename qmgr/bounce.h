/* bounce.h - reports to the sender: failure, delay, relayed to a host that sends no reports, or delivered by one.
 *
 * OWNERSHIP  The result is the caller's.
 * THREAD     qmgr.
 * ERRORS     The original's content can't be read: the report is made without it, and says so.
 * SEE        RFC 3464 (multipart/report), RFC 3461 4.1-4.3, 5.2; RFC 6533 for SMTPUTF8.
 */
#ifndef QMGR_BOUNCE_H
#define QMGR_BOUNCE_H

#include "base/buf.h"
#include "base/content.h"
#include "base/envelope.h"

/* Behind the first two: it is gone, to whoever sends no reports. */
enum report_kind { REPORT_FAILED, REPORT_DELAYED, REPORT_RELAYED, REPORT_DELIVERED };

struct report {
	const struct envelope *original;
	const struct content *content;
	const uint8_t *owed; /* by recipient: enum report_kind + 1, or 0 */
	const char *to;	     /* the sender; or postmaster, for a bounce that failed */
	const char *hostname;
	int64_t size_max;   /* bytes of the original that are returned; more: its header only */
	int64_t expires_ms; /* wall clock; said in a delay report: it is not tried any more then */
	int64_t now_ms;	    /* wall clock */
	uint64_t id;	    /* of the report */
};

bool bounce_wants(const struct recipient *, enum report_kind);
/* Does NOTIFY ask for, or not forbid, this report? */

void bounce_write(const struct report *, struct buf *to);

#endif
