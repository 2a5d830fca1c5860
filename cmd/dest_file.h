/* dest_file.h - SPOOL/destdb: what the relay has learnt about hosts, and what is suspended.
 *
 *	sluice destdb 1
 *	...			lines as in qmgr/destdb_text.h
 *	crc 89ABCDEF		CRC32C of all before
 *
 * Written to destdb.new, synced, renamed, and the folder synced: every ten seconds at most, when
 * something was learnt, and at the stop.
 *
 * THREAD     Main.
 * ERRORS     Logged. The file is worth a few attempts, and the names that are suspended: one that is
 *            missing is like an empty one, and a damaged one is moved to destdb.bad.
 */
#ifndef CMD_DEST_FILE_H
#define CMD_DEST_FILE_H

#include "base/buf.h"

void dest_file_read(const char *spool, struct buf *to);
void dest_file_write(const char *spool, const char *text);

#endif
