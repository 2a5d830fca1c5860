/* sandbox_paths.h - the files and folders that the relay opens after its start.
 *
 * OWNERSHIP  A path is lent until visit() returns.
 * THREAD     Main.
 * ERRORS     None: what is not there is visited all the same.
 */
#ifndef CMD_CONFINE_SANDBOX_PATHS_H
#define CMD_CONFINE_SANDBOX_PATHS_H

#include "base/conf.h"
#include "cmd/confine/landlock.h"

struct sandbox_visitor {
	void (*visit)(struct sandbox_visitor *, const char *path, enum landlock_right);
};

void sandbox_paths_conf(const struct conf *, struct sandbox_visitor *);
/* Files that the configuration names, itself included, and the folder of the queue. */

void sandbox_paths_system(struct sandbox_visitor *);
/* Files and folders that libraries read; the program and its libraries, which a restart runs. */

char *sandbox_paths_folder(const char *path);
/* The path to grant so that this file can also be replaced: its folder. NULL: that one holds the files of
 * others too, like /dev, and only the file itself should be granted. The caller frees it. */

#endif
