/* access_value.h - what a row of a table of access says.
 *
 *	accept (or ok, dunno)		nothing is wrong with it
 *	reject [CODE] [DSN] [TEXT]	550 5.7.1 unless said
 *	defer [CODE] [DSN] [TEXT]	450 4.7.1 unless said
 *	550 [DSN] TEXT, 450 [DSN] TEXT	the same, as in POSTFIX access(5)
 *	hold				accepted, and the message is held
 *	discard				accepted, and dropped
 *	verify				accepted if the next hop takes it; of recipients only
 *	flow NAME			accepted, and of this flow
 *
 * OWNERSHIP  access_value_fini() frees the text.
 * THREAD     Any. Pure.
 */
#ifndef BASE_ACCESS_VALUE_H
#define BASE_ACCESS_VALUE_H

#include "base/buf.h"

enum access_action {
	ACCESS_ACCEPT,
	ACCESS_REFUSE, /* with code, dsn, text */
	ACCESS_HOLD,
	ACCESS_DISCARD,
	ACCESS_VERIFY,
	ACCESS_FLOW, /* text is its name */
};

struct access_value {
	enum access_action action;
	int code; /* 400 to 599 */
	char dsn[12];
	char *text;
};

const char *access_value_parse(const char *, struct access_value *, struct buf *why);
/* NULL: good. Else where it is not, and why. */

void access_value_fini(struct access_value *);

#endif
