/* log_files.h - the files of the log, in the order of time: the one that is written, and those that
 * logrotate has put aside.
 *
 *	sluice.log  sluice.log.1  sluice.log.2.gz  sluice.log-20261122.gz  sluice-20261122.log.zst
 *
 * OWNERSHIP  log_files_fini() frees what was found.
 * THREAD     Main.
 * ERRORS     What can't be read is told in error, on a line each, and left out.
 * SEE        logrotate(8), dateext, extension; log_source.h.
 */
#ifndef CMD_LOGS_LOG_FILES_H
#define CMD_LOGS_LOG_FILES_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

#define LOG_FILE_NO_TIME                                                                           \
	INT64_MIN /* none is near its beginning: before all others, and always read */

struct log_file {
	char *path;
	int64_t first_ms; /* the time of its first line, of whatever program; or LOG_FILE_NO_TIME */
	int64_t written_ms; /* when it was last written to */
	bool faulty;	    /* could not be read to its end, which was told */
};

struct log_files {
	int n;
	struct log_file *of;
};

void log_files_find(struct log_files *, const char *path, struct buf *error);
/* Add that file, and those which rotation has made of it. */

void log_files_fini(struct log_files *);

#endif
