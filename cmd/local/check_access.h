/* check_access.h - what the configuration names, seen with the rights of the relay's user.
 *
 * A start reads all of it as root. A reload, and what is read anew at each connection, has that user's rights only, so that
 * what root alone may read is well once, and never again. The user's rights are tried in a process of its own, groups and all.
 *
 * THREAD     Main.
 * ERRORS     check_access_user(): false, and why. Else none: who is not root, or runs the relay as root, has nothing to try.
 */
#ifndef CMD_LOCAL_CHECK_ACCESS_H
#define CMD_LOCAL_CHECK_ACCESS_H

#include "base/conf.h"

#include <stdbool.h>

bool check_access_user(const struct conf *, struct buf *error);
/* There is such a user, where that matters. */

void check_access(const struct conf *, void (*tell)(void *context, int line, const char *text),
		  void *context);
/* Tell of each file that the user can't read, and of a queue or a log that is not the user's, with the command that mends it;
 * line: of its section, or 0. */

char *check_access_command(const struct conf *, const char *path);
/* Commands that make the relay's user, and nobody else but the owner, able to read it; the caller frees it. */

bool check_access_give(const char *user, int fd);
/* To the relay's user to read, if root makes it and there is such a user: group and mode. False: errno. */

#endif
