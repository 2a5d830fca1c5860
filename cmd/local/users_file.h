/* users_file.h - changes one login in the users' file, atomically.
 *
 * Other lines and comments stay as they are. The file is replaced by one that is synced, with the
 * owner of the old one, and readable by nobody but that and, if it was so before, its group. Who
 * writes at the same time waits: there is a lock on the folder.
 *
 * THREAD     Main.
 * ERRORS     False, and why in error; then the file is as it was.
 * SEE        base/users.h; sluice(8).
 */
#ifndef CMD_LOCAL_USERS_FILE_H
#define CMD_LOCAL_USERS_FILE_H

#include "base/buf.h"

#include <stdbool.h>

enum users_file_outcome {
	USERS_FILE_FAILED,
	USERS_FILE_ADDED,
	USERS_FILE_CHANGED,
	USERS_FILE_NONE
};

enum users_file_outcome users_file_set(const char *file, const char *login, const char *value,
				       const char *user, struct buf *error);
/* value NULL: delete it; NONE: it was not there. login as users_login() gives it. A new file belongs
 * to user, where root makes it and there is one of that name. */

#endif
