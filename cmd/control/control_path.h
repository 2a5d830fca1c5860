/* control_path.h - the path of the control socket, FOLDER/control, however long the folder's name is.
 *
 * The address of a UNIX socket has room for a hundred bytes only, so the folder is opened and named
 * by its descriptor. Where there is no /proc, the name must fit.
 *
 * OWNERSHIP  Embedded; control_path_close() closes the folder.
 * ERRORS     False and errno.
 */
#ifndef CMD_CONTROL_CONTROL_PATH_H
#define CMD_CONTROL_CONTROL_PATH_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>

struct control_path {
	int folder;
	struct sockaddr_un address;
};

bool control_path_open(struct control_path *, const char *folder);
void control_path_close(struct control_path *);

int control_path_connect(const char *folder);
/* To whoever listens there: a descriptor, or -1 and errno. */

#endif
