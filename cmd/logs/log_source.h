/* log_source.h - the lines of one file of the log, compressed or not.
 *
 *	file --> [ as it is | gzip: ISA-L | zstd, xz, bzip2: that program, by a pipe ] --> lines
 *
 * What a file is, its first bytes say, not its name.
 *
 * OWNERSHIP  A line is the source's until the next is asked for.
 * THREAD     Main.
 * ERRORS     NULL from log_source_open(), or false from log_source_close(), and why in error: lines up
 *            to there were good. A line of more than LOG_SOURCE_LINE_MAX bytes comes in parts.
 * SEE        RFC 1952.
 */
#ifndef CMD_LOGS_LOG_SOURCE_H
#define CMD_LOGS_LOG_SOURCE_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

enum { LOG_SOURCE_LINE_MAX = 1 << 20 };

struct log_source;

struct log_source *log_source_open(const char *path, struct buf *error);
bool log_source_line(struct log_source *, const char **line, size_t *len); /* without its LF */
bool log_source_close(struct log_source **, struct buf *error);

#endif
