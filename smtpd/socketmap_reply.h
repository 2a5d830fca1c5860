/* socketmap_reply.h - what a server of tables answers: "15:OK reject 554 no,".
 *
 *	netstring = digits ":" bytes ","	up to SOCKETMAP_REPLY_MAX of them
 *	bytes	  = "OK " value / "NOTFOUND " / "TEMP " reason / "TIMEOUT " reason / "PERM " reason
 *
 * OWNERSHIP  Pointers into the input.
 * THREAD     Any. Pure.
 * ERRORS     SOCKETMAP_REPLY_BAD: no such protocol, and the connection is worth nothing more.
 * SEE        POSTFIX socketmap_table(5), "PROTOCOL"; Bernstein, "Netstrings".
 */
#ifndef SMTPD_SOCKETMAP_REPLY_H
#define SMTPD_SOCKETMAP_REPLY_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

enum { SOCKETMAP_REPLY_MAX = 100000, SOCKETMAP_DIGITS_MAX = 6 };

enum socketmap_said {
	SOCKETMAP_REPLY_PART, /* more is to come */
	SOCKETMAP_REPLY_BAD,
	SOCKETMAP_REPLY_OK,
	SOCKETMAP_REPLY_NOT_FOUND,
	SOCKETMAP_REPLY_FAILED, /* TEMP, TIMEOUT, PERM: it could not say */
};

struct socketmap_reply {
	const char
		*text; /* the value, or the reason with its word in front; len bytes, none a NUL */
	size_t len;
	size_t used; /* bytes of the input, with all that is around it */
};

enum socketmap_said socketmap_reply_read(const char *bytes, size_t len, struct socketmap_reply *);

void socketmap_reply_ask(struct buf *to, const char *name, const char *key);
/* Appends the question. */

#endif
