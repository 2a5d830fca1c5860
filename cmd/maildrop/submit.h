/* submit.h - hand one message to the relay by SMTP, and wait for its answer.
 *
 * It goes to the first listener of the configuration that takes mail without TLS. All recipients
 * are taken, or the message is not sent.
 *
 * THREAD     Main; it blocks, but not for ever.
 * ERRORS     An exit status of sysexits.h, and a sentence in error: EX_TEMPFAIL when the relay can
 *            not be reached, breaks off, answers 4xx, or takes fewer recipients at once; EX_NOUSER, EX_DATAERR or EX_UNAVAILABLE
 *            for a recipient, content or anything else that it refuses for good.
 * SEE        RFC 5321; RFC 3030 (BDAT); RFC 3461 (NOTIFY, RET, ENVID).
 */
#ifndef CMD_MAILDROP_SUBMIT_H
#define CMD_MAILDROP_SUBMIT_H

#include "base/conf.h"
#include "base/header_addresses.h"

struct submission {
	const char *sender; /* "" is the null sender */
	const struct address_list *to;
	const char *notify, *ret, *envid; /* as SMTP has them, or NULL; envid in xtext */
	bool eightbit;
	bool verbose;	     /* the dialogue goes to stderr */
	struct buf *content; /* CRLF lines */
};

const struct conf_listener *submit_listener(const struct conf *);
/* The one that it goes to, or NULL. */

int submit(const struct conf *, const struct submission *, struct buf *error);

#endif
