/* SPDX-License-Identifier: ISC */
#include "cmd/control/control_path.h"

#include "base/file_io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static bool name_by_descriptor(struct control_path *p)
{
	snprintf(p->address.sun_path, sizeof p->address.sun_path, "/proc/self/fd/%d/control",
		 p->folder);
	return access("/proc/self/fd", X_OK) == 0;
}

/* In a jail there is no /proc. */
static bool name_in_full(struct control_path *p, const char *folder)
{
	const size_t most = sizeof p->address.sun_path;
	int len = snprintf(p->address.sun_path, most, "%s/control", folder);
	bool fits = len > 0 && (size_t)len < most;
	if (!fits)
		errno = ENAMETOOLONG;
	return fits;
}

bool control_path_open(struct control_path *p, const char *folder)
{
	*p = (struct control_path){.folder = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC)};
	p->address.sun_family = AF_UNIX;
	return p->folder >= 0 && (name_by_descriptor(p) || name_in_full(p, folder));
}

void control_path_close(struct control_path *p)
{
	file_close(p->folder);
	p->folder = -1;
}

int control_path_connect(const char *folder)
{
	struct control_path path;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (control_path_open(&path, folder) && fd >= 0 &&
	    connect(fd, (struct sockaddr *)&path.address, sizeof path.address) == 0) {
		control_path_close(&path);
		return fd;
	}
	int saved = errno;
	file_close(fd);
	control_path_close(&path);
	errno = saved;
	return -1;
}
