/* session_table.h - the states of a session, and what may follow what.
 *
 *	S(state, text for the log, how input is read, states that may follow)
 *
 *	HANDSHAKE --> GREETED --> READY --> MAIL --> RCPT --> DATA -----------> STORE --> READY
 *	                                             RCPT --> CHUNK <--> BDAT
 *	                                                      CHUNK ----------> STORE
 *
 * Each refusal at the end of content, each EHLO and RSET lead back to READY with no transaction; a
 * chunk nobody asked for is read away in CHUNK and answered where it ends.
 *
 * SEE        RFC 5321 4.1.4; RFC 3030 2; RFC 3207 4.2.
 */
#ifndef SMTPD_SESSION_TABLE_H
#define SMTPD_SESSION_TABLE_H

#define SESSION_BIT(state) (1U << SESSION_##state)

#define AFTER(...) TO_MAX4(__VA_ARGS__, CLOSED, CLOSED, CLOSED, CLOSED)
#define TO_MAX4(a, b, c, d, ...)                                                                   \
	(SESSION_BIT(a) | SESSION_BIT(b) | SESSION_BIT(c) | SESSION_BIT(d) | SESSION_BIT(CLOSED))

#define SESSION_STATES(S)                                                                          \
	S(HANDSHAKE, "tls", read_nothing, AFTER(GREETED))                                          \
	S(GREETED, "greeted", read_command, AFTER(READY, HANDSHAKE, CHUNK))                        \
	S(READY, "ready", read_command, AFTER(MAIL, HANDSHAKE, CHUNK))                             \
	S(MAIL, "mail", read_command, AFTER(READY, RCPT, CHUNK))                                   \
	S(RCPT, "rcpt", read_command, AFTER(READY, DATA, CHUNK))                                   \
	S(DATA, "data", read_content, AFTER(READY, STORE))                                         \
	S(BDAT, "bdat", read_command, AFTER(READY, CHUNK))                                         \
	S(CHUNK, "chunk", read_chunk, AFTER(GREETED, READY, BDAT, STORE))                          \
	S(STORE, "store", read_nothing, AFTER(READY))                                              \
	S(CLOSED, "closed", read_nothing, AFTER(CLOSED))

enum session_state {
#define S(name, ...) SESSION_##name,
	SESSION_STATES(S)
#undef S
		SESSION_STATE_COUNT
};

#endif
