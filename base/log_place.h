/* log_place.h - where lines of the log go: standard error, a file, a FIFO, or syslog's socket.
 *
 *	"stderr"  "/a/file"  "syslog", at /dev/log  "syslog:/another/socket"
 *
 * If the place takes nothing at the moment (a full pipe or socket), the writer waits until a
 * deadline, which may be set from another thread. If it fails (a full disk, no syslogd), the lines
 * are lost.
 *
 * OWNERSHIP  Embedded; log_place_close() closes what log_place_open() has opened.
 * THREAD     One at a time.
 * ERRORS     log_place_open(): false, and why in error. The rest: lines that were not written.
 * SEE        RFC 3164 4; syslog(3).
 */
#ifndef BASE_LOG_PLACE_H
#define BASE_LOG_PLACE_H

#include "base/buf.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct log_place {
	char *path; /* NULL: standard error */
	int fd;
	bool syslog;
	bool blocks;	    /* writes of more than PIPE_BUF may */
	bool torn;	    /* the last line was written in part */
	int64_t refused_ms; /* steady clock: when syslogd was last looked for in vain */
};

bool log_place_open(struct log_place *, const char *where, struct buf *error);
void log_place_close(struct log_place *);

bool log_place_try(const char *where, struct buf *error);
/* Could that file be opened anew? Of all else: true. */

void log_place_reopen(struct log_place *);
/* Open the file anew, as after a rotation. When that fails the old one is written on. */

int log_place_write(struct log_place *, const char *lines, size_t len,
		    const _Atomic int64_t *give_up_ms);
int log_place_send(struct log_place *, int level, const char *lines, size_t len,
		   const _Atomic int64_t *give_up_ms);
/* Write whole lines, or send each to syslog, as of that enum log_level. Return how many were lost.
 * give_up_ms: the time of the steady clock up to which a full place is waited for; 0: for ever. */

#endif
