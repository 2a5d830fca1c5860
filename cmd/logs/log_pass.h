/* log_pass.h - the front page of cmd/logs/: the log read again, for those who ask what has happened.
 *
 *	log_files --> [ log_source: lines ] --> [ base/log_line: events ] --> log_pass --> trace, report
 *
 *	log_when       the moments that --since, --until and --day name
 *	log_files      which files there are, rotated and compressed ones too
 *	log_source     the lines of one file
 *	log_pass       one pass over all of them
 *	trace_find     the messages that an address, an id or a Message-ID means, in several passes
 *	trace_tell     the story of each of them, in words and as JSON
 *	report_count   a day in figures, in one pass
 *	report_print   the same as text and as JSON
 *
 * THREAD     Main.
 * ERRORS     What can't be read is told on standard error, and left out; the rest is read.
 */
#ifndef CMD_LOGS_LOG_PASS_H
#define CMD_LOGS_LOG_PASS_H

#include "base/conf.h"
#include "base/log_line.h"
#include "cmd/logs/log_files.h"

#include <stdbool.h>

struct log_span {
	int64_t from_ms, to_ms; /* wall clock; to_ms is the first that is not in it */
};

typedef void log_pass_take(void *context, const struct log_line *, const char *text, size_t len);
/* One line of the span, which is there during the call only. */

typedef bool log_pass_may(void *context, const char *text, size_t len);
/* Is a line worth the time that it takes to read it? NULL: each is. */

bool log_pass_files(struct log_files *, const struct conf *, const char *path);
/* Find the files of that log; NULL: of the one that the configuration names. "-" is standard input, which
 * is kept in a file for the time, as what comes through a pipe is. False, and told why: there is none. */

bool log_pass(struct log_files *, struct log_span, log_pass_may *, log_pass_take *, void *context);
/* Read all lines in the order of time. False: not all of them could be read, which is told once. */

#endif
