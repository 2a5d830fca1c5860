/* trace_find.h - what the log has on the messages that an address, an id or a Message-ID means.
 *
 *	pass 1   lines with that address       -> ids, sessions of mail from it; lines of no message, such as
 *		 refusals
 *	pass 2   lines with these ids          -> their sessions, and ids of what was made of them
 *	pass 3   lines with these sessions     -> nothing new: all is there
 *
 * An id begins with the second. It is as many passes as bring something new, and bounded, since a
 * session leads to no other message, and a message to its report only.
 *
 * OWNERSHIP  trace_find_fini() frees messages, sessions and copies of lines.
 * THREAD     Main.
 * ERRORS     As log_pass.h.
 */
#ifndef CMD_LOGS_TRACE_FIND_H
#define CMD_LOGS_TRACE_FIND_H

#include "base/ident.h"
#include "base/keyed_hash.h"
#include "cmd/logs/log_pass.h"

struct trace_line {
	char *text;
	size_t len;
	int64_t wall_ms;
};

struct trace_lines {
	int n, room;
	struct trace_line *of;
};

/* A message or a session. */
struct trace_item {
	uint64_t number;
	struct trace_lines lines;
	uint64_t session; /* of a message; 0: not known */
	bool reported;	  /* a message that was made of another one */
	UT_hash_handle hh;
};

struct trace_find {
	const char *wanted; /* an address, login or Message-ID, without angles; NULL: ids only */
	int most;	    /* messages; of more the latest are kept */
	struct log_span span;
	struct trace_item *messages; /* in the order of their ids, that is, of time */
	struct trace_item *sessions;
	struct trace_lines loose; /* that have wanted, and no message */
	int dropped;		  /* messages beyond most */
	struct buf value;
	bool learnt; /* in this pass */
	char *key;   /* of wanted: name_key.h; or NULL */
	bool plain;  /* that is written so in each form of the log */
};

void trace_find_add(struct trace_find *, uint64_t id); /* a message that is wanted */
bool trace_find_run(struct trace_find *, struct log_files *);
void trace_find_clear(struct trace_find *); /* what was found, and what was added */
void trace_find_fini(struct trace_find *);

const struct trace_item *trace_find_session(const struct trace_find *, const struct trace_item *);
/* The session in which a message came, or NULL. */

#endif
