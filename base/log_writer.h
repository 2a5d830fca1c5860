/* log_writer.h - the log thread: takes events from all threads, writes their lines to one place.
 *
 *	log_writer_take() --> [ stack ] --> the thread: log_format.c --> log_place.c
 *
 * OWNERSHIP  What was taken is the writer's.
 * THREAD     log_writer_take(), _running(), _dropped(), _reopen(): any, without
 *            waiting. log_writer_start(), _run(), _stop(): main.
 * ERRORS     A place that can't be opened: said in error. A write that fails: its lines are counted
 *            as dropped, and so are events that come while LOG_BACKLOG_MAX bytes wait for a
 *            place that takes nothing. The log is told of them when it takes lines again.
 */
#ifndef BASE_LOG_WRITER_H
#define BASE_LOG_WRITER_H

#include "base/log.h"

#include <stdbool.h>
#include <stdint.h>

/* Events one after the other, as log_record_pack() packs them. Malloc's. */
struct log_held {
	struct log_held *next; /* the writer's */
	size_t len;	       /* bytes */
	int count;
	uint64_t packed[];
};

bool log_writer_start(const char *where, enum log_format, struct buf *error);
/* Open the place, named as in log_place.h, and take events for it. */

bool log_writer_run(struct buf *error);
/* Start the thread that writes them. Until then they wait; without it log_writer_stop() writes. */

void log_writer_stop(void);
/* All that was taken is written first, as far as the place takes it within two seconds. Harmless when
 * not started. */

bool log_writer_move(const char *where, enum log_format, struct buf *error);
/* Write to another place from now on, or to the same where that is NULL, and in that form. False: it
 * can't be opened, and all is as before. */

void log_writer_reopen(void);

void log_writer_take(struct log_held *);
/* Put it behind the backlog; without a running thread write it to stderr at once. Beyond LOG_BACKLOG_MAX it
 * is dropped and counted. */

bool log_writer_running(void);
void log_writer_wait(int most_ms); /* until what was taken is written */

#endif
