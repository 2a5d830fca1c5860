/* archive_report.h - the copy of a message that an archive gets.
 *
 *	multipart/mixed
 *	    text/plain		the envelope: lines of NAME: VALUE, one Recipient for each
 *	    message/rfc822	the message, byte by byte; message/global where it came with SMTPUTF8
 *
 * It is put piece by piece, so that a large message takes no memory.
 *
 * THREAD     Any.
 * ERRORS     An errno: the message can't be read, or the copy not written.
 * SEE        RFC 2046 5.1, 5.2.1; RFC 6532 3.7.
 */
#ifndef STAGES_ARCHIVE_REPORT_H
#define STAGES_ARCHIVE_REPORT_H

#include "stages/archive_mark.h"
#include "stages/stages.h"

struct archive_report {
	const struct passage *passage;	   /* of the message; its draft is settled */
	const struct envelope *to;	   /* of the copy; its id is set */
	const struct archive_marks *marks; /* of the message */
	const char *hostname;
	int64_t now_ms; /* as people see it */
};

int archive_report_write(const struct archive_report *, struct content_writer *to);

#endif
