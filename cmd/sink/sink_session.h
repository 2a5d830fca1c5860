/* sink_session.h - one connection of `sluice sink`.
 *
 * STATES     commands; AUTH, a line of an exchange; DATA content; BDAT content; handshake, until TLS stands;
 *            closing (nothing is read any more).
 * OWNERSHIP  The session owns itself; it ends with its connection, or by sink_session_drop().
 * THREAD     Main.
 * ERRORS     None; a broken connection ends the session.
 * SEE        RFC 5321, 2920, 3030.
 */
#ifndef CMD_SINK_SINK_SESSION_H
#define CMD_SINK_SINK_SESSION_H

#include "base/stream.h"
#include "cmd/sink/sink_auth.h"
#include "cmd/sink/sink_data.h"
#include "cmd/sink/sink_server.h"

enum {
	SINK_LINE_MAX = 8192, /* bytes of one command */
	SINK_RECIPIENTS_MAX = 100000,
	SINK_OUT_HIGH = 64 << 10, /* bytes of replies unread: nothing more is read */
};

struct sink_session {
	struct list link;
	struct sink *sink;
	struct stream *stream;
	enum {
		SINK_COMMANDS,
		SINK_AUTH,
		SINK_DATA,
		SINK_BDAT,
		SINK_HANDSHAKE,
		SINK_CLOSING,
	} state;
	bool served; /* not turned away: it counts for the limit */
	bool greeted, tls;
	struct sink_auth *auth; /* under way, or NULL */
	char *login;		/* who has logged in; or NULL */
	int64_t taken;		/* messages */
	char *from;		/* NULL: no transaction */
	int nto;
	char **to;
	struct buf content; /* kept when it is to be stored, or else only counted */
	uint64_t size;	    /* bytes of content so far */
	struct sink_data data;
	uint64_t chunk_left;
	bool chunk_last, chunk_void; /* void: read away, as its BDAT was refused */
	struct buf reply;	     /* made in this turn */
	struct list held;	     /* replies that wait for their time */
	size_t held_bytes;
	struct timer hold;
};

void sink_session_new(struct sink *, int fd);
void sink_session_drop(struct list *link);

void sink_session_reply(struct sink_session *, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* A whole reply line, without its CRLF. */

void sink_session_reset(struct sink_session *);
/* No transaction. */

void sink_command(struct sink_session *, char *line);
/* sink_command.c: one command, without its line end; or a line of AUTH. */

void sink_content_end(struct sink_session *);
/* sink_command.c: all of the content has come: store and answer. */

bool sink_store(struct sink_session *, uint64_t *number);
/* sink_store.c: write content and envelope; false when that fails. */

#endif
