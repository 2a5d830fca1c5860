/* response_table.h - everything that the server says, one row each.
 *
 *	R(name, code, enhanced code, text)
 *
 * The text is a format where its user gives arguments. An empty enhanced code: RFC 2034 4 wants
 * none there. Texts never carry what a client sent.
 *
 * SEE        RFC 5321 4.2; RFC 3463; RFC 7504 (521).
 */
#ifndef SMTPD_RESPONSE_TABLE_H
#define SMTPD_RESPONSE_TABLE_H

#define RESPONSES(R)                                                                               \
	R(GREETING, 220, "", "%s ESMTP sluice")                                                    \
	R(HELLO, 250, "", "%s")                                                                    \
	R(OK, 250, "2.0.0", "ok")                                                                  \
	R(HELP, 214, "2.0.0", "see RFC 5321")                                                      \
	R(BYE, 221, "2.0.0", "goodbye")                                                            \
	R(CANNOT_VERIFY, 252, "2.5.2", "send mail and see")                                        \
	R(TLS_READY, 220, "2.0.0", "go ahead")                                                     \
	R(SENDER_OK, 250, "2.1.0", "sender ok")                                                    \
	R(RECIPIENT_OK, 250, "2.1.5", "recipient ok")                                              \
	R(SEND_CONTENT, 354, "", "end with a dot on a line of its own")                            \
	R(CHUNK_OK, 250, "2.0.0", "go on")                                                         \
	R(QUEUED, 250, "2.0.0", "queued as %s")                                                    \
	/* the end of the session */                                                               \
	R(CLOSING, 421, "4.3.2", "%s is going down")                                               \
	R(OVERLOADED, 421, "4.3.2", "too many connections")                                        \
	R(CLIENT_CONNECTIONS, 421, "4.7.0", "too many connections from your address")              \
	R(CLIENT_RATE, 421, "4.7.0", "your address connects too often")                            \
	R(TIMED_OUT, 421, "4.4.2", "%s timed out waiting for you")                                 \
	R(TOO_MANY_ERRORS, 421, "4.7.0", "too many errors")                                        \
	R(NOT_SMTP, 521, "5.5.1", "this is SMTP")                                                  \
	R(OUT_OF_STEP, 554, "5.5.0", "SMTP protocol synchronization")                              \
	R(UNEXPECTED_CHUNK, 521, "5.5.1", "BDAT was not offered")                                  \
	R(FILTER_CLOSES, 421, "4.7.0", "a filter has ended the session")                           \
	/* commands */                                                                             \
	R(UNKNOWN, 500, "5.5.2", "what?")                                                          \
	R(LINE_TOO_LONG, 500, "5.5.2", "line too long")                                            \
	R(BAD_BYTES, 500, "5.5.2", "NUL, or CR or LF that stands alone")                           \
	R(NO_ARGUMENT, 501, "5.5.4", "no argument allowed")                                        \
	R(NEEDS_ARGUMENT, 501, "5.5.4", "argument missing")                                        \
	R(BAD_NAME, 501, "5.5.4", "that is no host name")                                          \
	R(NOT_IMPLEMENTED, 502, "5.5.1", "not offered")                                            \
	R(ORDER, 503, "5.5.1", "not now")                                                          \
	R(HELLO_FIRST, 503, "5.5.1", "EHLO first")                                                 \
	R(NEEDS_TLS, 530, "5.7.0", "STARTTLS first")                                               \
	/* AUTH */                                                                                 \
	R(AUTH_OK, 235, "2.7.0", "authentication successful")                                      \
	R(AUTH_LIMIT, 421, "4.7.0", "too many failed logins")                                      \
	R(AUTH_UNAVAILABLE, 454, "4.7.0", "temporary authentication failure, try again later")     \
	R(AUTH_TOO_LONG, 500, "5.5.6", "authentication line too long")                             \
	R(AUTH_MALFORMED, 501, "5.5.2", "no base64, or not what the mechanism wants")              \
	R(AUTH_CANCELLED, 501, "5.7.0", "authentication cancelled")                                \
	R(AUTH_TWICE, 503, "5.5.1", "already authenticated")                                       \
	R(AUTH_MECHANISM, 504, "5.5.4", "that mechanism is not offered")                           \
	R(AUTH_SUSPENDED, 525, "5.7.13", "this account may not send mail")                         \
	R(AUTH_EXPIRED, 535, "5.7.8", "your password has expired: change it, then try again")      \
	R(AUTH_FAILED, 535, "5.7.8", "authentication failed: wrong name or password")              \
	R(AUTH_IN_CLEAR, 538, "5.7.11", "encryption required: STARTTLS first")                     \
	/* MAIL and RCPT */                                                                        \
	R(BAD_SENDER, 501, "5.1.7", "bad sender address")                                          \
	R(BAD_RECIPIENT, 501, "5.1.3", "bad recipient address")                                    \
	R(NOT_ASCII, 553, "5.6.7", "an address beyond ASCII needs SMTPUTF8")                       \
	R(BAD_PARAMETER, 501, "5.5.4", "bad parameter")                                            \
	R(UNKNOWN_PARAMETER, 555, "5.5.4", "unknown parameter")                                    \
	R(TOO_LARGE, 552, "5.3.4", "message too large")                                            \
	R(FENCED, 452, "4.3.2", "this node has no place in its cluster now")                       \
	R(NO_ROOM, 452, "4.3.1", "no room in the queue")                                           \
	R(NO_MEMORY, 452, "4.3.1", "not enough memory at the moment")                              \
	R(NOT_YOUR_ADDRESS, 553, "5.7.1", "your login may not use this sender")                    \
	R(NO_RELAY, 550, "5.7.1", "relaying denied")                                               \
	R(NO_POSTMASTER, 550, "5.1.1", "no postmaster here")                                       \
	R(LOOPBACK, 550, "5.1.2", "mail does not go to that address")                              \
	R(ALIAS_LOOP, 550, "5.4.6", "that alias leads to itself, or to too many")                  \
	R(NOT_PROCESSED, 451, "4.3.0", "the message could not be processed, try again later")      \
	R(REWRITE_LOOP, 451, "4.3.5", "address rewriting goes round in a circle")                  \
	R(TOO_MANY_RECIPIENTS, 452, "4.5.3", "too many recipients")                                \
	R(NOT_VERIFIED, 450, "4.1.1", "the next host can not be asked about this recipient now")   \
	R(LIMIT_DEFERRED, 450, "4.7.1", "too many %s of this %s: try again in %s")                 \
	R(LIMIT_REJECTED, 550, "5.7.1", "too many %s of this %s")                                  \
	R(LOGIN_SUSPENDED, 550, "5.7.13", "this login is suspended: ask your postmaster")          \
	/* content */                                                                              \
	R(NO_RECIPIENTS, 554, "5.5.1", "no valid recipients")                                      \
	R(BAD_CHUNK, 501, "5.5.4", "that is no chunk size")                                        \
	R(BAD_CONTENT, 550, "5.6.0", "content has NUL, or CR or LF that stands alone")             \
	R(LONG_CONTENT_LINE, 550, "5.6.0", "content has a line that is too long")                  \
	R(LOOP, 554, "5.4.6", "too many Received fields: mail loop")

#endif
