/* message_text.h - what sendmail reads: lines to CRLF, the fields of its header, what is missing.
 *
 *	standard input --> message_text_read --> message_text_recipients (-t)
 *	                                     --> message_text_complete --> content for submit.c
 *
 * OWNERSHIP  Embedded.
 * THREAD     Any.
 * ERRORS     Said where they can occur.
 * SEE        RFC 5322 3.6; RFC 6409 8 (what a submission may add).
 */
#ifndef CMD_MAILDROP_MESSAGE_TEXT_H
#define CMD_MAILDROP_MESSAGE_TEXT_H

#include "base/header_addresses.h"

#include <stdint.h>
#include <stdio.h>

struct message_text {
	struct buf header; /* fields, each line with CRLF; the empty line is not in it */
	struct buf body;
	bool eightbit;
	bool too_large;
};

struct message_author {
	const char *address; /* of From, where there is none */
	const char *name;    /* or NULL */
	const char *host;    /* in Message-ID */
};

void message_text_init(struct message_text *);
void message_text_fini(struct message_text *);

bool message_text_read(struct message_text *, FILE *from, bool dot_ends, uint64_t size_max);
/* False: reading failed (errno), or more than size_max bytes (too_large; 0: no limit). A line
 * "From " of a mailbox file at the beginning is left out, and so are NULs of the body; a CR in
 * the midst of one of its lines ends that. Long lines of the header are folded. */

bool message_text_recipients(const struct message_text *, struct address_list *, struct buf *error);
/* Of To, Cc and Bcc; or, where there is any such, of Resent-To, Resent-Cc and Resent-Bcc only. */

void message_text_complete(struct message_text *, const struct message_author *);
/* Remove Bcc and Resent-Bcc; add Date, Message-ID and From where they are missing. NULL: add nothing. */

bool message_text_field(const struct message_text *, const char *name, const char **value,
			size_t *len, size_t *cursor);
/* The next field of that name from *cursor on, which begins as 0; folded lines are part of it. */

#endif
