/* check_open.h - the folders of a queue, opened to look only, and its lock.
 *
 * OWNERSHIP  check_folders_close() closes what check_folders_open() has opened, also when that failed.
 * THREAD     Any.
 * ERRORS     False, with a sentence in error. A folder that is not there is no error: its
 *            descriptor is -1.
 */
#ifndef SPOOL_CHECK_OPEN_H
#define SPOOL_CHECK_OPEN_H

#include "base/buf.h"

#include <stdbool.h>

struct check_folders {
	int top, lock, log, large; /* descriptors, or -1 */
};

bool check_folders_open(struct check_folders *, const char *spool, int *format, struct buf *error);
void check_folders_close(struct check_folders *);

#endif
