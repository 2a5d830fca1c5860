/* maildrop_form.h - the format of a file in the maildrop.
 *
 *	sluice maildrop 1 CRC SIZE	CRC32C, in hexadecimal, of the SIZE bytes behind this line
 *	from ADDRESS			nothing behind the blank: the null sender
 *	notify WORDS			as NOTIFY= says it; this and the next three may be missing
 *	ret FULL | ret HDRS
 *	envid XTEXT
 *	body 8BITMIME
 *	to ADDRESS			once or more
 *					an empty line; then the content, lines with CRLF
 *
 * Lines of the head end with LF. Whoever may write into the folder may have written this, so the
 * relay believes nothing of it; sendmail asks the same questions before it leaves a message there,
 * so that its user hears of what would be refused; but for tables, which it may not be able to read. The listener's
 * recipient_limit is about a transaction of SMTP, and bounds no message here.
 *
 * OWNERSHIP  The caller's.
 * THREAD     Any. Pure.
 * ERRORS     As the reply that the message would get by SMTP; RESPONSE_BAD_PARAMETER: a head that
 *            is none.
 * SEE        maildrop.h.
 */
#ifndef CMD_MAILDROP_MAILDROP_FORM_H
#define CMD_MAILDROP_MAILDROP_FORM_H

#include "base/envelope.h"
#include "cmd/maildrop/maildrop_access.h"
#include "cmd/maildrop/submit.h"
#include "smtpd/alias_heard.h"
#include "smtpd/content_in.h"
#include "smtpd/response.h"

enum { MAILDROP_FIRST_MAX = 64, MAILDROP_HEAD_MAX = 16 << 20 }; /* bytes */

struct maildrop_first {
	uint32_t crc;
	uint64_t size; /* bytes behind the line */
	size_t length; /* of the line */
};

void maildrop_form_put(struct buf *first, struct buf *head, const struct submission *);
/* The first line, and all between it and the content. */

bool maildrop_form_first(const char *bytes, size_t len, struct maildrop_first *);
/* bytes: the beginning of the file, up to MAILDROP_FIRST_MAX of them. */

size_t maildrop_form_head_end(const char *bytes, size_t len, size_t from);
/* Where the content begins, or 0: it is not among them. Nothing ends before from. */

/* For reading the head, and what tables say of it. */
struct maildrop_with {
	struct alias_heard *heard;    /* of servers; NULL: they count as having no alias */
	struct maildrop_access *said; /* cleared before */
};

enum response maildrop_form_read(const struct conf *, const struct maildrop_with *,
				 const char *head, size_t len, struct envelope *);
/* The submission that the head names, aliases expanded; without recipients, if tables throw all of them away.
 * RESPONSE_LOOKUP_FAILED: servers of aliases must be asked first, about what is wanted now. RESPONSE_ACCESS_DENIED: as said has
 * it. */

void maildrop_form_limits(const struct conf *, struct content_in *);
/* Of the listener to which sendmail would have spoken, or of the first. */

#endif
