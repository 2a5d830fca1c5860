/* destdb_text.h - what the destination database knows, as a text that outlives the process.
 *
 *	host<TAB>key=...<TAB>name=...<TAB>failures=3<TAB>retry=...	one a line, fields in any order
 *	suspended<TAB>site=NAME		suspended<TAB>host=NAME
 *
 * Hosts about which there is something to know: failed ones, with the time at which they may be tried
 * again and why, and those whose TLS is broken,
 * how deep a pipeline each has earned, those that want a simpler one, and those that take so many
 * messages on one connection. Times are milliseconds since 1970. A field that is
 * not known is passed over, so that an older program reads what a newer one has written.
 *
 * THREAD     qmgr, or main while that does not run.
 * ERRORS     A line that makes no sense is passed over: the worst that is lost is an attempt.
 */
#ifndef QMGR_DESTDB_TEXT_H
#define QMGR_DESTDB_TEXT_H

#include "base/buf.h"
#include "qmgr/scheduler.h"

void destdb_write(struct qmgr *, struct buf *to);
void destdb_read(struct qmgr *, const char *text);

#endif
