/* milter_table.h - the commands and answers of the milter protocol, one row each.
 *
 *	E(event, command, the version that brought it, text for the log, its macros, the filter wants none, it gives no answer)
 *	A(answer, command)
 *
 * SEE        Sendmail's libmilter, mfdef.h, protocol version 6; POSTFIX MILTER_README.
 */
#ifndef SMTPD_MILTER_TABLE_H
#define SMTPD_MILTER_TABLE_H

enum { MILTER_VERSION_LEAST = 2, MILTER_VERSION = 6 };

/* Parts of a message that a filter may want to change (SMFIF_). */
enum milter_action {
	MILTER_ADD_HEADER = 0x1,
	MILTER_CHANGE_BODY = 0x2,
	MILTER_ADD_RECIPIENT = 0x4,
	MILTER_DELETE_RECIPIENT = 0x8,
	MILTER_CHANGE_HEADER = 0x10,
	MILTER_QUARANTINE = 0x20,
	MILTER_CHANGE_SENDER = 0x40,
	MILTER_ADD_RECIPIENT_ARGS = 0x80,
	MILTER_ACTIONS = 0x1ff,
};

/* Events that a filter may not want to be told, or not answer (SMFIP_). */
enum milter_step {
	MILTER_NO_CONNECT = 0x1,
	MILTER_NO_HELO = 0x2,
	MILTER_NO_MAIL = 0x4,
	MILTER_NO_RCPT = 0x8,
	MILTER_NO_BODY = 0x10,
	MILTER_NO_HEADER = 0x20,
	MILTER_NO_END_OF_HEADER = 0x40,
	MILTER_SILENT_HEADER = 0x80,
	MILTER_NO_UNKNOWN = 0x100,
	MILTER_NO_DATA = 0x200,
	MILTER_SKIP = 0x400,
	MILTER_SILENT_CONNECT = 0x1000,
	MILTER_SILENT_HELO = 0x2000,
	MILTER_SILENT_MAIL = 0x4000,
	MILTER_SILENT_RCPT = 0x8000,
	MILTER_SILENT_DATA = 0x10000,
	MILTER_SILENT_UNKNOWN = 0x20000,
	MILTER_SILENT_END_OF_HEADER = 0x40000,
	MILTER_SILENT_BODY = 0x80000,
	MILTER_LEADING_SPACE = 0x100000,
	MILTER_STEPS = 0x1ff7ff, /* all of these: what is offered */
};

/* The stages that have macros, by the numbers that a filter names them by (SMFIM_). */
enum milter_stage {
	MILTER_AT_CONNECT,
	MILTER_AT_HELO,
	MILTER_AT_MAIL,
	MILTER_AT_RCPT,
	MILTER_AT_DATA,
	MILTER_AT_END_OF_BODY,
	MILTER_AT_END_OF_HEADER,
	MILTER_STAGES,
	MILTER_AT_NONE = MILTER_STAGES,
};

#define MILTER_EVENTS(E)                                                                           \
	E(CONNECT, 'C', 2, "CONNECT", MILTER_AT_CONNECT, MILTER_NO_CONNECT, MILTER_SILENT_CONNECT) \
	E(HELO, 'H', 2, "HELO", MILTER_AT_HELO, MILTER_NO_HELO, MILTER_SILENT_HELO)                \
	E(MAIL, 'M', 2, "MAIL", MILTER_AT_MAIL, MILTER_NO_MAIL, MILTER_SILENT_MAIL)                \
	E(RCPT, 'R', 2, "RCPT", MILTER_AT_RCPT, MILTER_NO_RCPT, MILTER_SILENT_RCPT)                \
	E(DATA, 'T', 4, "DATA", MILTER_AT_DATA, MILTER_NO_DATA, MILTER_SILENT_DATA)                \
	E(HEADER, 'L', 2, "header", MILTER_AT_NONE, MILTER_NO_HEADER, MILTER_SILENT_HEADER)        \
	E(END_OF_HEADER, 'N', 2, "end of header", MILTER_AT_END_OF_HEADER,                         \
	  MILTER_NO_END_OF_HEADER, MILTER_SILENT_END_OF_HEADER)                                    \
	E(BODY, 'B', 2, "body", MILTER_AT_NONE, MILTER_NO_BODY, MILTER_SILENT_BODY)                \
	E(END_OF_BODY, 'E', 2, "end of body", MILTER_AT_END_OF_BODY, 0, 0)                         \
	E(UNKNOWN, 'U', 3, "unknown command", MILTER_AT_NONE, MILTER_NO_UNKNOWN,                   \
	  MILTER_SILENT_UNKNOWN)

enum milter_event {
#define E(name, ...) MILTER_##name,
	MILTER_EVENTS(E)
#undef E
		MILTER_EVENT_COUNT
};

/* Packets besides, which have no answer. */
enum milter_order {
	MILTER_NEGOTIATE = 'O', /* but this */
	MILTER_MACROS = 'D',
	MILTER_ABORT = 'A',
	MILTER_QUIT = 'Q',
	MILTER_QUIT_NEW_CONNECTION = 'K',
};

#define MILTER_ANSWERS(A)                                                                          \
	A(CONTINUE, 'c')                                                                           \
	A(ACCEPT, 'a')                                                                             \
	A(REJECT, 'r')                                                                             \
	A(TEMPFAIL, 't')                                                                           \
	A(DISCARD, 'd')                                                                            \
	A(SKIP, 's')                                                                               \
	A(REPLY, 'y')                                                                              \
	A(SHUTDOWN, '4')                                                                           \
	A(GIVE_UP, 'f')                                                                            \
	A(PROGRESS, 'p')

enum milter_answer_kind {
#define A(name, ...) MILTER_ANSWER_##name,
	MILTER_ANSWERS(A)
#undef A
		MILTER_ANSWER_COUNT
};

/* C(change, command, what must have been negotiated, a number first, texts, texts that may be missing) */
#define MILTER_CHANGES(C)                                                                          \
	C(HEADER_ADD, 'h', MILTER_ADD_HEADER, false, 2, 0)                                         \
	C(HEADER_INSERT, 'i', MILTER_ADD_HEADER, true, 2, 0)                                       \
	C(HEADER_CHANGE, 'm', MILTER_CHANGE_HEADER, true, 2, 0)                                    \
	C(BODY, 'b', MILTER_CHANGE_BODY, false, 0, 0)                                              \
	C(SENDER, 'e', MILTER_CHANGE_SENDER, false, 2, 1)                                          \
	C(RECIPIENT_ADD, '+', MILTER_ADD_RECIPIENT, false, 1, 0)                                   \
	C(RECIPIENT_ADD_ARGS, '2', MILTER_ADD_RECIPIENT_ARGS, false, 2, 1)                         \
	C(RECIPIENT_DELETE, '-', MILTER_DELETE_RECIPIENT, false, 1, 0)                             \
	C(QUARANTINE, 'q', MILTER_QUARANTINE, false, 1, 0)

enum milter_change_kind {
#define C(name, ...) MILTER_CHANGE_TO_##name,
	MILTER_CHANGES(C)
#undef C
		MILTER_CHANGE_COUNT
};

#endif
