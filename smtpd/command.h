/* command.h - one line of a client: which verb, may it come now, what is its argument.
 *
 *	V(verb, handler, states, argument, flags)
 *
 * OWNERSHIP  The argument lies in the line.
 * THREAD     The session's. Pure: command_check() says what is wrong, session_read.c acts on it.
 * ERRORS     As a reply.
 * SEE        RFC 5321 4.1.1, 4.1.4; RFC 2920 3.1.
 */
#ifndef SMTPD_COMMAND_H
#define SMTPD_COMMAND_H

#include "smtpd/response.h"
#include "smtpd/session_table.h"

/* Bytes of a line, CRLF included: long ORCPT and ENVID are legal, and so are long tokens (RFC 4954 3). */
enum { COMMAND_MAX = 4096, COMMAND_AUTH_MAX = 12288 };

struct session;

enum command_argument { ARGUMENT_NONE, ARGUMENT_MAY, ARGUMENT_MUST };

enum command_flag {
	VERB_PLAIN = 1,	 /* before TLS even where that is required */
	VERB_LAST = 2,	 /* nothing may follow it before it is answered */
	VERB_JUNK = 4,	 /* does nothing for a message; too many are errors */
	VERB_SECRET = 8, /* its argument is wiped afterwards */
};

enum {
	ANY_TIME = SESSION_BIT(GREETED) | SESSION_BIT(READY) | SESSION_BIT(MAIL) |
		   SESSION_BIT(RCPT) | SESSION_BIT(BDAT),
	IN_MAIL = SESSION_BIT(MAIL) | SESSION_BIT(RCPT),
};

#define VERBS(V)                                                                                   \
	V(EHLO, verb_ehlo, ANY_TIME, ARGUMENT_MUST, VERB_PLAIN | VERB_JUNK)                        \
	V(HELO, verb_helo, ANY_TIME, ARGUMENT_MUST, VERB_PLAIN | VERB_JUNK)                        \
	V(MAIL, verb_mail, SESSION_BIT(READY), ARGUMENT_MUST, 0)                                   \
	V(RCPT, verb_rcpt, IN_MAIL, ARGUMENT_MUST, 0)                                              \
	V(DATA, verb_data, IN_MAIL, ARGUMENT_NONE, VERB_LAST)                                      \
	V(BDAT, verb_bdat, ANY_TIME, ARGUMENT_MAY, VERB_PLAIN)                                     \
	V(RSET, verb_rset, ANY_TIME, ARGUMENT_NONE, VERB_PLAIN | VERB_JUNK)                        \
	V(NOOP, verb_noop, ANY_TIME, ARGUMENT_MAY, VERB_PLAIN | VERB_JUNK)                         \
	V(VRFY, verb_vrfy, ANY_TIME, ARGUMENT_MUST, VERB_JUNK)                                     \
	V(HELP, verb_help, ANY_TIME, ARGUMENT_MAY, VERB_JUNK)                                      \
	V(QUIT, verb_quit, ANY_TIME, ARGUMENT_NONE, VERB_PLAIN)                                    \
	V(STARTTLS, verb_starttls, ANY_TIME, ARGUMENT_NONE, VERB_PLAIN | VERB_LAST)                \
	V(EXPN, verb_refused, ANY_TIME, ARGUMENT_MAY, 0)                                           \
	V(ETRN, verb_refused, ANY_TIME, ARGUMENT_MAY, 0)                                           \
	V(TURN, verb_refused, ANY_TIME, ARGUMENT_MAY, 0)                                           \
	V(AUTH, verb_auth, ANY_TIME, ARGUMENT_MAY, VERB_PLAIN | VERB_SECRET)                       \
	V(XCLIENT, verb_xclient, ANY_TIME, ARGUMENT_MAY, VERB_PLAIN)                               \
	V(XFORWARD, verb_refused, ANY_TIME, ARGUMENT_MAY, 0)                                       \
	/* HTTP: whoever says so would say the rest of the request next. */                        \
	V(GET, verb_http, ANY_TIME, ARGUMENT_MAY, VERB_PLAIN)                                      \
	V(HEAD, verb_http, ANY_TIME, ARGUMENT_MAY, VERB_PLAIN)                                     \
	V(POST, verb_http, ANY_TIME, ARGUMENT_MAY, VERB_PLAIN)                                     \
	V(PUT, verb_http, ANY_TIME, ARGUMENT_MAY, VERB_PLAIN)                                      \
	V(DELETE, verb_http, ANY_TIME, ARGUMENT_MAY, VERB_PLAIN)                                   \
	V(PATCH, verb_http, ANY_TIME, ARGUMENT_MAY, VERB_PLAIN)                                    \
	V(OPTIONS, verb_http, ANY_TIME, ARGUMENT_MAY, VERB_PLAIN)                                  \
	V(CONNECT, verb_http, ANY_TIME, ARGUMENT_MAY, VERB_PLAIN)                                  \
	V(TRACE, verb_http, ANY_TIME, ARGUMENT_MAY, VERB_PLAIN)                                    \
	V(PRI, verb_http, ANY_TIME, ARGUMENT_MAY, VERB_PLAIN)

struct command {
	const char *name; /* upper case, "" when there is no such verb */
	void (*handler)(struct session *, char *argument);
	unsigned states;
	enum command_argument argument_rule;
	unsigned flags;
	char *argument; /* "" when there is none */
};

size_t command_max(const char *line, size_t len); /* what this one may have, or its beginning */

enum response command_split(char *line, size_t len, struct command *);
/* line has len bytes and a NUL behind them, no CRLF. RESPONSE_OK, or what is wrong with the
 * line. */

enum response command_check(const struct command *, enum session_state, bool tls_missing);
/* May it come now? RESPONSE_OK, or the refusal. */

/* The handlers: each in verb_X.c. They reply, and move the session. */
#define V(verb, handler, ...) void handler(struct session *, char *argument);
VERBS(V) /* some have the same: a declaration may come again */
#undef V

#endif
