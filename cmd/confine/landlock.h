/* landlock.h - restricts by Landlock which files the process can open from now on.
 *
 *	landlock_abi() --> landlock_begin() --> landlock_grant() ... --> landlock_enforce()
 *
 * What is granted for a folder holds for all below it, files that come later too. Rights on files that
 * are open already stay. A rule stands for what the path led to when it was granted: a file that is
 * replaced by another is another one, so grant its folder.
 *
 * OWNERSHIP  The rule set is a descriptor; landlock_enforce() closes it.
 * THREAD     landlock_enforce() binds the thread that calls it, and those that it starts afterwards.
 *            It can't be undone, and holds for every program that the process executes.
 * ERRORS     False or -1, and errno.
 * SEE        landlock(7).
 */
#ifndef CMD_CONFINE_LANDLOCK_H
#define CMD_CONFINE_LANDLOCK_H

#include <stdbool.h>

enum landlock_right {
	LANDLOCK_READ,	  /* files and folders */
	LANDLOCK_EXECUTE, /* the same, and run them as programs */
	LANDLOCK_APPEND,  /* read, make and write files */
	LANDLOCK_KEEP, /* all that a queue needs: also remove, rename, make folders and sockets */
};

enum { LANDLOCK_ABI_LEAST = 2 }; /* before it no file could be renamed from folder to folder */

int landlock_abi(void);
/* The version that the kernel offers, LANDLOCK_ABI_LEAST or higher; 0: none that can be used. */

int landlock_begin(bool abstract_sockets);
/* A rule set that refuses all that can be refused. abstract_sockets: those of other programs may be
 * connected to. -1: errno. */

bool landlock_grant(int rules, const char *path, enum landlock_right);
/* False: there is no such file or folder. */

bool landlock_enforce(int rules);

#endif
