/* kept_file.h - small files in the folder of the queue that survive restarts.
 *
 *	sluice destdb 1		what the relay has learnt about hosts, and what is suspended of them: lines
 *	...			as in qmgr/dest/destdb_text.h
 *	crc 89ABCDEF		CRC32C of all before
 *
 *	sluice suspended 1	logins that are suspended, one a line
 *
 *	sluice suppressed 1	recipients that hosts do not know, as in qmgr/suppressed.h
 *
 *	sluice events 1		events that their receiver has not taken, one a line
 *
 *	sluice mta-sts 1	MTA-STS policies known, as in sts/sts_text.h
 *
 *	sluice tlsrpt 1		what is to be reported on TLS, as in tlsrpt/tlsrpt_text.h
 *
 *	sluice logins 1		what each login has sent, today and yesterday: limits_write() in smtpd/limits.h
 *
 *	sluice flows 1		what became of each flow's mail, likewise: qmgr/flow_tally.h
 *
 *	sluice cluster 1	which orders for all nodes were carried out: cluster/orders.h
 *
 * Written to NAME.new, synced, renamed, and the folder synced: destdb every ten seconds at most, when
 * something was learnt, and at the stop; suppressed likewise, and at each order of the operator, before it is
 * answered; mta-sts, tlsrpt, logins and flows as destdb; suspended and cluster at each order of the
 * operator, before it is answered; events at the stop. What could not be written is tried again, but of events:
 * kept_text.h.
 *
 * THREAD     Main.
 * ERRORS     Logged. One that is missing is like an empty one, and one that is damaged or can't be read is moved to
 *            NAME.bad: the next that is written would take its place.
 */
#ifndef CMD_WATCH_KEPT_FILE_H
#define CMD_WATCH_KEPT_FILE_H

#include "base/buf.h"

#include <stdbool.h>

struct kept_file {
	const char *name, *first_line;
	const char *damaged; /* what is lost with it, for the log */
};

extern const struct kept_file kept_destdb, kept_suspended, kept_suppressed, kept_events, kept_sts,
	kept_tlsrpt, kept_cluster, kept_logins, kept_flows;

void kept_file_read(const struct kept_file *, const char *spool, struct buf *to);
void kept_file_look(const struct kept_file *, const char *spool, struct buf *to);
/* Of somebody else, who may be at work: nothing is moved, and what can't be read is like an empty one. */

bool kept_file_write(const struct kept_file *, const char *spool, const char *text);
/* False: what was there stays. */

bool kept_file_try(const struct kept_file *, const char *spool, const char *text);
/* The same, but nothing is logged: errno says why. */

#endif
