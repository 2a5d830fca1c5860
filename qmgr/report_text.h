/* report_text.h - the formats in a report: dates, folded lines, xtext fields.
 *
 * THREAD     qmgr.
 * SEE        RFC 5322 3.3; RFC 3464 2.1, 2.2.1, 2.3.1.
 */
#ifndef QMGR_REPORT_TEXT_H
#define QMGR_REPORT_TEXT_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

enum { REPORT_DATE = 48, REPORT_LINE_MAX = 76 };

const char *report_date(int64_t wall_ms, char text[REPORT_DATE]);
/* In universal time, and by the system's date, of a time by the queue's clock (date.h). */

void report_folded(struct buf *, const char *indent, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* One logical line, folded at blanks, CRLF at the end. indent stands before each line; folded ones
 * have a further blank. */

void report_mta(struct buf *, const char *host);
/* Remote-MTA, of a host as a verdict names it: its name, or its address as a literal (RFC 5321 4.1.3). */

void report_orcpt(struct buf *, const char *orcpt); /* Original-Recipient; NULL: nothing */
void report_envid(struct buf *, const char *envid); /* Original-Envelope-Id; NULL: nothing */

#endif
