/* tlsrpt_report.h - the report as JSON, and the mail around it.
 *
 * OWNERSHIP  Results are appended to the caller's buf.
 * THREAD     Any. Pure.
 * ERRORS     None.
 * SEE        RFC 8460 4.4 (JSON), 5.1 (file name), 5.3 (mail).
 */
#ifndef TLSRPT_TLSRPT_REPORT_H
#define TLSRPT_TLSRPT_REPORT_H

#include "tlsrpt/tlsrpt_tally.h"

#define TLSRPT_TYPE "application/tlsrpt+gzip"

/* Who reports: nothing of it is empty. */
struct tlsrpt_sender {
	const char *hostname, *organization, *contact, *from;
};

void tlsrpt_report_write(const struct tlsrpt_report *, const struct tlsrpt_sender *,
			 struct buf *to); /* JSON, gzipped */

void tlsrpt_report_mail(const struct tlsrpt_report *, const struct tlsrpt_sender *,
			const char *rcpt, int64_t now_ms, struct buf *to);
/* now_ms: as the system's clock has it. Lines end with CRLF. */

#endif
