/* destdb_text.h - what the destination database knows, as a text that outlives the process.
 *
 *	host<TAB>key=...<TAB>address=...<TAB>failures=3<TAB>retry=...	one a line, fields in any order
 *	plain<TAB>key=...<TAB>name=...<TAB>until=...	of a host before: its TLS is broken by that name
 *	site<TAB>key=...<TAB>window=...<TAB>at=...	and pace, since, refused, what was said; and shut, shut_for, of its source;
 *					apart=1: relays have other keys than hosts of the same name
 *	provider<TAB>key=NAME<TAB>pace=...		likewise
 *	suspended<TAB>site=NAME<TAB>until=...	or host=, domain=, provider=, name=: what it means (suspend.h)
 *
 * Hosts about which there is something to know: those that are out, until when and why, how fast each
 * is, how many connections it takes, how deep a pipeline it has earned, whether it wants a simpler
 * one; and the windows of sites that differ from what they are at first. Times are milliseconds
 * since 1970. A field that is not known is passed over, so that an older program reads what a newer
 * one has written.
 *
 * THREAD     qmgr, or main while that does not run.
 * ERRORS     A line that makes no sense is passed over: the worst that is lost is an attempt.
 */
#ifndef QMGR_DEST_DESTDB_TEXT_H
#define QMGR_DEST_DESTDB_TEXT_H

#include "base/buf.h"
#include "qmgr/dest/destdb.h"

void destdb_write(struct destdb *, struct buf *to);
void destdb_read(struct destdb *, const char *text);

#endif
