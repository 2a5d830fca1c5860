/* SPDX-License-Identifier: ISC */
#include "cmd/control/control_path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

bool control_path_open(struct control_path *p, const char *folder)
{
	*p = (struct control_path){.folder = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC)};
	p->address.sun_family = AF_UNIX;
	snprintf(p->address.sun_path, sizeof p->address.sun_path, "/proc/self/fd/%d/control",
		 p->folder);
	return p->folder >= 0;
}

void control_path_close(struct control_path *p)
{
	if (p->folder >= 0)
		close(p->folder);
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
	if (fd >= 0)
		close(fd);
	control_path_close(&path);
	errno = saved;
	return -1;
}
