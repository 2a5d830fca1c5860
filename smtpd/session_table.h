/* session_table.h - the states of a session, and what may follow what.
 *
 *	S(state, text for the log, how input is read, states that may follow)
 *
 *	HANDSHAKE --> GREETED --> READY --> MAIL --> RCPT --> DATA -----------> READY
 *	                                             RCPT --> CHUNK <--> BDAT
 *	                                                      CHUNK ----------> READY
 *	                       READY <--> AUTH
 *	any --> WAIT --> the same again (wait.h); content waits so for the spool
 *
 * Each refusal at the end of content, each EHLO and RSET lead back to READY with no transaction; a
 * chunk nobody asked for is read away in CHUNK and answered where it ends. Any state may become
 * CLOSED, but not out of a wait.
 *
 * SEE        RFC 5321 4.1.4; RFC 3030 2; RFC 3207 4.2.
 */
#ifndef SMTPD_SESSION_TABLE_H
#define SMTPD_SESSION_TABLE_H

#define SESSION_BIT(state) (1U << SESSION_##state)

/* Those that a wait may begin in, and so leads back to. */
#define SESSION_MAY_WAIT                                                                           \
	(SESSION_BIT(GREETED) | SESSION_BIT(READY) | SESSION_BIT(AUTH) | SESSION_BIT(MAIL) |       \
	 SESSION_BIT(RCPT) | SESSION_BIT(DATA) | SESSION_BIT(BDAT) | SESSION_BIT(CHUNK))

#define TO(state) SESSION_BIT(state)

#define SESSION_STATES(S)                                                                          \
	S(HANDSHAKE, "tls", read_nothing, TO(GREETED))                                             \
	S(GREETED, "greeted", read_command, TO(READY) | TO(HANDSHAKE) | TO(CHUNK))                 \
	S(READY, "ready", read_command,                                                            \
	  TO(GREETED) | TO(AUTH) | TO(MAIL) | TO(HANDSHAKE) | TO(CHUNK))                           \
	S(AUTH, "auth", read_auth, TO(READY))                                                      \
	S(MAIL, "mail", read_command, TO(READY) | TO(RCPT) | TO(CHUNK))                            \
	S(RCPT, "rcpt", read_command, TO(READY) | TO(DATA) | TO(CHUNK))                            \
	S(DATA, "data", read_content, TO(READY))                                                   \
	S(BDAT, "bdat", read_command, TO(READY) | TO(CHUNK))                                       \
	S(CHUNK, "chunk", read_chunk, TO(GREETED) | TO(READY) | TO(BDAT))                          \
	S(WAIT, "wait", read_nothing, SESSION_MAY_WAIT)                                            \
	S(CLOSED, "closed", read_nothing, 0)

enum session_state {
#define S(name, ...) SESSION_##name,
	SESSION_STATES(S)
#undef S
		SESSION_STATE_COUNT
};

#endif
