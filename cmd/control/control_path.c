/* SPDX-License-Identifier: ISC */
#include "cmd/control/control_path.h"

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
