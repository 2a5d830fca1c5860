/* response.h - the text of replies.
 *
 * THREAD     Any. Pure.
 * SEE        response_table.h.
 */
#ifndef SMTPD_RESPONSE_H
#define SMTPD_RESPONSE_H

#include "base/buf.h"
#include "smtpd/response_table.h"

#include <stdbool.h>

enum response {
#define R(name, ...) RESPONSE_##name,
	RESPONSES(R)
#undef R
		RESPONSE_COUNT
};

struct response_row {
	int code;
	const char *dsn, *text;
};

const struct response_row *response_row(enum response);

const char *response_reason(enum response);
/* The text without our name in front, for the log. */

void response_vprint(struct buf *to, enum response, va_list);
/* "CODE DSN TEXT\r\n". The arguments must be clean. */

void response_print(struct buf *to, enum response, ...);

void response_put_given(struct buf *to, const char *reply);
/* One that somebody else has given, perhaps of several lines: a line longer than RFC 5321 4.5.3.1.5 lets a client expect goes
 * on in another. */

#endif
