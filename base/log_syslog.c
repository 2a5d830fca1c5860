/* SPDX-License-Identifier: ISC */
#include "base/log_syslog.h"

#include "base/file_io.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 8192 };

int log_syslog_open(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	size_t len = strlen(path);
	if (len >= sizeof a.sun_path) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(a.sun_path, path, len);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof a) != 0) {
		file_close(fd);
		fd = -1;
	}
	return fd;
}

/* Names of months don't depend on a locale: the program never sets one. */
static size_t put_head(char *to, size_t size, int level, bool tagged)
{
	static const int severity[] = {LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERR};
	assert(level >= 0 && (size_t)level < sizeof severity / sizeof *severity);
	time_t now = time(NULL);
	struct tm tm;
	char when[32];
	localtime_r(&now, &tm);
	strftime(when, sizeof when, "%b %e %H:%M:%S", &tm);
	int n = snprintf(to, size, "<%d>%s ", LOG_MAIL | severity[level], when);
	if (!tagged)
		n += snprintf(to + n, size - (size_t)n, "sluice[%d]: ", (int)getpid());
	assert(n > 0 && (size_t)n < size);
	return (size_t)n;
}

bool log_syslog_send(int fd, int level, const char *line, size_t len)
{
	char text[LINE_MAX_BYTES + 128];
	bool tagged = len > 7 && strncmp(line, "sluice/", 7) == 0;
	size_t n = put_head(text, 128, level, tagged);
	if (len > LINE_MAX_BYTES)
		len = LINE_MAX_BYTES;
	memcpy(text + n, line, len);
	return send(fd, text, n + len, MSG_NOSIGNAL) >= 0;
}
