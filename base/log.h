/* log.h - one event, one line.
 *
 *	log_event(LOG_LEVEL_INFO, "queued", "id", log_id(id), "from", sender, NULL)
 *
 * Keys and values come in pairs, ended by a NULL key. A NULL value leaves its key out. Values may
 * hold whatever a peer sent: they are escaped, so that one event stays one line, and cut at
 * LOG_VALUE_MAX, with a note of their length: "...(cut, 70000 bytes)".
 *
 *	each thread: log_event() -> values of its own -- log_flush() --> [ log thread ] -> lines -> write
 *
 * Logging never waits: when the log thread is more than LOG_BACKLOG_MAX behind, events are dropped
 * and counted, and the count is logged when there is room again.
 *
 * OWNERSHIP  Values are copied. The event's name and the keys are not: they last as long as the program.
 * THREAD     log_event(), log_flush(), log_set_level(): any. log_open(), log_start(), log_close(): main.
 * ERRORS     A log that cannot be opened: log_open() returns false and says why in error.
 * SEE        sluice(8), "LOG".
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/conf.h"

#include <stddef.h>
#include <stdint.h>

enum { LOG_BACKLOG_MAX = 16 << 20, LOG_VALUE_MAX = 512 }; /* bytes */

enum log_level {
	LOG_LEVEL_DEBUG,
	LOG_LEVEL_INFO,
	LOG_LEVEL_WARNING,
	LOG_LEVEL_ERROR,
	LOG_LEVEL_NONE, /* of no event: none is logged */
};

bool log_open(const char *where, enum log_format, enum log_level, struct buf *error);
/* Open the log. Before it, and after log_close(), events go straight to stderr. */

bool log_start(struct buf *error);
/* Start the log thread; until then events wait. */

bool log_move(const char *where, enum log_format, struct buf *error);
/* Log to another place, or to the same where that is NULL, and in that form. False: it can't be
 * opened, and all is as before. */

void log_reopen(void); /* for logrotate: open the file anew */
void log_close(void);
/* Lines that were flushed are written, but a place that takes nothing is not waited for longer than two
 * seconds; then the thread ends. */

void log_set_level(enum log_level);

void log_event(enum log_level, const char *event, ...) __attribute__((sentinel));
struct log_held;

struct log_held *log_hold(enum log_level, const char *event, ...) __attribute__((sentinel));
/* An event for another thread to log, or not at all: what comes of it must not be in the log before
 * it. NULL when it is below the level. */

void log_release(struct log_held **); /* log it, and flush; NULL is allowed, also below */
void log_held_free(struct log_held **);

void log_flush(void);
/* Give this thread's events to the log thread. Loops do so before they sleep. */

void log_drain(void);
/* The same, and wait until all lines are written, but no longer than a second. */

/* Values, formatted into a ring of buffers of the thread: good until the sixteenth next call, and
 * at most 511 bytes. In JSON those of log_number() and log_seconds() are numbers, all others
 * strings. */
const char *log_number(int64_t);
const char *log_seconds(int64_t ms); /* "1.25" */
const char *log_id(uint64_t id);
const char *log_time(int64_t wall_ms);			 /* "2026-03-01T08:00:00Z" */
const char *log_seconds_each(const int64_t ms[], int n); /* "0.002/0/1.25"; sixteen at most */
const char *log_reply(int code,
		      const char *text); /* "250 ok"; where it is 0 the text itself, uncut */
const char *log_text(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

void log_json_string(struct buf *, const char *text);
/* The text in quotes, escaped as RFC 8259 wants; invalid UTF-8 becomes U+FFFD. */

#endif
