/* log_writer.h - the log thread: takes lines from all threads, writes them to one place.
 *
 *	log_writer_take() --> [ stack of chunks ] --> the thread --> log_place.c
 *
 * OWNERSHIP  A chunk belongs to the writer once it is taken.
 * THREAD     log_writer_take(), _running(), _is_syslog(), _dropped(), _reopen(): any, without
 *            waiting. log_writer_start(), _run(), _stop(): main.
 * ERRORS     A place that can't be opened: said in error. A write that fails: its lines are counted
 *            as dropped, and so are those that come while LOG_BACKLOG_MAX bytes wait for a
 *            place that takes nothing. The log is told of them when it takes lines again.
 */
#ifndef BASE_LOG_WRITER_H
#define BASE_LOG_WRITER_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

bool log_writer_start(const char *where, struct buf *error); /* as log_place.h says */
/* Open the place, and take lines for it. */

bool log_writer_run(struct buf *error);
/* Start the thread that writes them. Until then they wait; without it log_writer_stop() writes. */

void log_writer_stop(void);
/* Lines that were taken are written first, as far as the place takes it within two seconds. Harmless when
 * not started. */

bool log_writer_move(const char *where, struct buf *error);
/* Write to another place from now on. False: it can't be opened, and all is as before. */

void log_writer_reopen(void);

void log_writer_take(struct buf *lines, int count, bool marked);
/* Empty lines into the backlog; without a running thread write them to stderr at once. Beyond
 * LOG_BACKLOG_MAX they are dropped and counted. */

bool log_writer_running(void);
void log_writer_wait(int most_ms); /* until what was taken is written */
bool log_writer_is_syslog(void);
uint64_t log_writer_dropped(void);

bool log_take_own(struct buf *to, const char *event, const char *key, int64_t value);
/* log.c: a warning of the log's own, formatted but not handed over; true when it is marked. */

#endif
