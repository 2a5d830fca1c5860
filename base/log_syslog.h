/* log_syslog.h - one line to syslogd, by its socket.
 *
 * Not syslog(3), which waits for a syslogd that does not read, and says nothing of lines that it
 * could not get rid of.
 *
 * THREAD     One.
 * ERRORS     -1 or false, and errno; EAGAIN: syslogd has not read what it was sent.
 * SEE        RFC 3164 4.
 */
#ifndef BASE_LOG_SYSLOG_H
#define BASE_LOG_SYSLOG_H

#include <stdbool.h>
#include <stddef.h>

int log_syslog_open(const char *path);

bool log_syslog_send(int fd, int level, const char *line, size_t len);
/* A line that begins "sluice/smtp[123]: " has its tag with it; any other gets "sluice[PID]: ". */

#endif
