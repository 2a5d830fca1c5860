/* response_table.h - all replies of the server, one row each.
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
	R(OK, 250, "2.0.0", "Ok")                                                                  \
	R(HELP, 214, "2.0.0", "See RFC 5321")                                                      \
	R(BYE, 221, "2.0.0", "Bye")                                                                \
	R(CANNOT_VERIFY, 252, "2.5.2", "Cannot VRFY user, but will attempt delivery")              \
	R(TLS_READY, 220, "2.0.0", "Ready to start TLS")                                           \
	R(SENDER_OK, 250, "2.1.0", "Sender ok")                                                    \
	R(RECIPIENT_OK, 250, "2.1.5", "Recipient ok")                                              \
	R(SEND_CONTENT, 354, "", "Start mail input; end with <CRLF>.<CRLF>")                       \
	R(CHUNK_OK, 250, "2.0.0", "Chunk received")                                                \
	R(QUEUED, 250, "2.0.0", "Ok: queued as %s")                                                \
	/* the end of the session */                                                               \
	R(CLOSING, 421, "4.3.2", "%s Service shutting down, closing connection")                   \
	R(OVERLOADED, 421, "4.3.2", "Too many connections, try again later")                       \
	R(CLIENT_CONNECTIONS, 421, "4.7.0", "Too many connections from your address")              \
	R(CLIENT_RATE, 421, "4.7.0", "Too many connections in a short time from your address")     \
	R(TIMED_OUT, 421, "4.4.2", "%s Timeout exceeded, closing connection")                      \
	R(TOO_MANY_ERRORS, 421, "4.7.0", "Too many errors")                                        \
	R(NOT_SMTP, 521, "5.5.1", "This is an SMTP server")                                        \
	R(OUT_OF_STEP, 554, "5.5.0", "SMTP synchronization error")                                 \
	R(UNEXPECTED_CHUNK, 521, "5.5.1", "BDAT is not supported here")                            \
	R(FILTER_CLOSES, 421, "4.7.0", "A mail filter has closed the connection")                  \
	/* commands */                                                                             \
	R(UNKNOWN, 500, "5.5.2", "Command not recognized")                                         \
	R(LINE_TOO_LONG, 500, "5.5.2", "Line too long")                                            \
	R(BAD_BYTES, 500, "5.5.2", "Command contains NUL, bare CR or bare LF")                     \
	R(NO_ARGUMENT, 501, "5.5.4", "Syntax error: no argument allowed")                          \
	R(NEEDS_ARGUMENT, 501, "5.5.4", "Syntax error: argument missing")                          \
	R(BAD_NAME, 501, "5.5.4", "Syntax error: invalid host name")                               \
	R(NOT_IMPLEMENTED, 502, "5.5.1", "Command not implemented")                                \
	R(ORDER, 503, "5.5.1", "Bad sequence of commands")                                         \
	R(NEED_MAIL, 503, "5.5.1", "Need MAIL before RCPT")                                        \
	R(NEED_RCPT, 503, "5.5.1", "Need MAIL and RCPT first")                                     \
	R(NESTED_MAIL, 503, "5.5.1", "Nested MAIL command")                                        \
	R(IN_TRANSACTION, 503, "5.5.1", "Command not allowed during a mail transaction")           \
	R(TLS_TWICE, 503, "5.5.1", "TLS already active")                                           \
	R(HELLO_FIRST, 503, "5.5.1", "Send EHLO first")                                            \
	R(NEEDS_TLS, 530, "5.7.0", "Must issue a STARTTLS command first")                          \
	R(LOOKUP_FAILED, 451, "4.3.0", "A table cannot be asked for now, try again later")         \
	R(NEEDS_LOGIN, 530, "5.7.0", "Authentication required")                                    \
	/* AUTH */                                                                                 \
	R(AUTH_OK, 235, "2.7.0", "Authentication successful")                                      \
	R(AUTH_LIMIT, 421, "4.7.0", "Too many failed logins")                                      \
	R(AUTH_UNAVAILABLE, 454, "4.7.0", "Temporary authentication failure, try again later")     \
	R(AUTH_TOO_LONG, 500, "5.5.6", "Authentication exchange line is too long")                 \
	R(AUTH_MALFORMED, 501, "5.5.2", "Invalid base64 or invalid authentication data")           \
	R(AUTH_CANCELLED, 501, "5.7.0", "Authentication cancelled")                                \
	R(AUTH_TWICE, 503, "5.5.1", "Already authenticated")                                       \
	R(AUTH_MECHANISM, 504, "5.5.4", "Authentication mechanism not supported")                  \
	R(AUTH_SUSPENDED, 525, "5.7.13", "This account may not send mail")                         \
	R(AUTH_EXPIRED, 535, "5.7.8", "Your password has expired: change it, then try again")      \
	R(AUTH_FAILED, 535, "5.7.8", "Authentication failed: wrong name or password")              \
	R(AUTH_IN_CLEAR, 538, "5.7.11", "Encryption required: issue STARTTLS first")               \
	/* MAIL and RCPT */                                                                        \
	R(BAD_SENDER, 501, "5.1.7", "Bad sender address syntax")                                   \
	R(BAD_RECIPIENT, 501, "5.1.3", "Bad recipient address syntax")                             \
	R(NOT_ASCII, 553, "5.6.7", "Non-ASCII address requires SMTPUTF8")                          \
	R(BAD_PARAMETER, 501, "5.5.4", "Bad or repeated parameter")                                \
	R(HOLD_TOO_LONG, 501, "5.5.4", "Release time is beyond what FUTURERELEASE allows")         \
	R(UNKNOWN_PARAMETER, 555, "5.5.4", "Unsupported parameter")                                \
	R(TOO_LARGE, 552, "5.3.4", "Message size exceeds fixed limit")                             \
	R(FENCED, 452, "4.3.2", "Node is fenced off, try another")                                 \
	R(NOT_COPIED, 452, "4.3.1", "Queue cannot be replicated, try again later")                 \
	R(NO_ROOM, 452, "4.3.1", "Insufficient system storage")                                    \
	R(NO_MEMORY, 452, "4.3.1", "Insufficient memory, try again later")                         \
	R(NOT_YOUR_ADDRESS, 553, "5.7.1", "Sender address not owned by your login")                \
	R(NO_RELAY, 550, "5.7.1", "Relay access denied")                                           \
	R(ACCESS_DENIED, 550, "5.7.1", "Access denied")                                            \
	R(NO_POSTMASTER, 550, "5.1.1", "No postmaster is configured here")                         \
	R(LOOPBACK, 550, "5.1.2", "Recipient address leads back to this host")                     \
	R(ALIAS_LOOP, 550, "5.4.6", "Alias loop, or alias expands to too many addresses")          \
	R(NOT_PROCESSED, 451, "4.3.0", "Message could not be processed, try again later")          \
	R(REWRITE_LOOP, 451, "4.3.5", "Address rewriting loop")                                    \
	R(TOO_MANY_RECIPIENTS, 452, "4.5.3", "Too many recipients")                                \
	R(NOT_VERIFIED, 450, "4.1.1", "Recipient cannot be verified now, try again later")         \
	R(LIMIT_DEFERRED, 450, "4.7.1", "Too many %s for this %s: try again in %s")                \
	R(LIMIT_REJECTED, 550, "5.7.1", "Too many %s for this %s")                                 \
	R(LOGIN_SUSPENDED, 550, "5.7.13", "This login is suspended: ask your postmaster")          \
	/* content */                                                                              \
	R(NO_RECIPIENTS, 554, "5.5.1", "No valid recipients")                                      \
	R(BAD_CHUNK, 501, "5.5.4", "Syntax error: bad chunk size")                                 \
	R(BAD_CONTENT, 550, "5.6.0",                                                               \
	  "Message contains NUL, bare CR or bare LF; bare_newline = normalise takes CR and LF")    \
	R(LONG_CONTENT_LINE, 550, "5.6.0", "Message contains a line that is too long")             \
	R(LOOP, 554, "5.4.6", "Too many hops: mail loop")

#endif
