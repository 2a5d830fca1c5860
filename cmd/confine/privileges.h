/* privileges.h - changes from root to the user of the configuration.
 *
 *	privileges_find()      before anything is opened: who will we be?
 *	privileges_lend()      the queue is made and opened with that user's rights
 *	privileges_return()    ports below 1024 are bound, and keys read, as root
 *	privileges_drop()      for good
 *
 * Nothing happens where the program was not started as root, or the user is root or "".
 *
 * THREAD     Main.
 * ERRORS     False, and why in error.
 */
#ifndef CMD_CONFINE_PRIVILEGES_H
#define CMD_CONFINE_PRIVILEGES_H

#include "base/buf.h"

#include <stdbool.h>
#include <sys/types.h>

struct privileges {
	bool change;
	char *name;
	uid_t uid;
	gid_t gid;
};

bool privileges_of_default(const char *user);
/* The user of the defaults: who only tries the relay out has not made that one yet, is told, and goes on
 * as root. Who names another one means it. */

bool privileges_find(struct privileges *, const char *user, struct buf *error);
bool privileges_own_folder(const struct privileges *, const char *path, struct buf *error);
/* Make the folder if it is missing, and give it to the user. Nothing where root may not touch it, unless it is root's own
 * in a folder such as /tmp: with the user's rights it is made, or can be used, or not. */

bool privileges_gives_folder(const struct privileges *, const char *path);
/* Would that give it to the user? */

void privileges_own_file(const struct privileges *, const char *path);
/* Give a regular file to the user; one that is not there is none of our business. */

bool privileges_may_touch(const struct privileges *, const char *path);
/* May root open or make this file or folder for the user? Not where the path is a symbolic link, or anybody but root
 * could put one there: then it is to be opened with the user's rights, whose it may be. */

bool privileges_lend(const struct privileges *, struct buf *error);
bool privileges_return(const struct privileges *, struct buf *error);
bool privileges_drop(struct privileges *, struct buf *error);
void privileges_fini(struct privileges *);

bool privileges_become(const char *user, struct buf *error);
/* For good: for orders that write files which must be the relay's own. */

void privileges_raise_limits(void);
/* Each session, connection and segment takes a descriptor: as many as we may have. */

#endif
