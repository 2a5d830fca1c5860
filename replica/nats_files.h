/* nats_files.h - whether the files by which TLS is spoken with NATS are still those that a connection was made with.
 *
 * The library reads them once, when a connection is made, and connects again with what it had then.
 *
 * OWNERSHIP  Embedded.
 * THREAD     One at a time. stat() may block, as on a disk that fails.
 * ERRORS     A file that can't be looked at is like none.
 */
#ifndef REPLICA_NATS_FILES_H
#define REPLICA_NATS_FILES_H

#include "base/conf.h"

#include <stdbool.h>
#include <sys/stat.h>

enum { NATS_FILES = 3 };

struct nats_files {
	struct stat is[NATS_FILES]; /* all 0: none */
};

void nats_files_note(struct nats_files *, const struct conf_cluster *);
/* As they are; before they are read. */

bool nats_files_changed(const struct nats_files *, const struct conf_cluster *);
/* Since they were noted. Without TLS none is read. */

#endif
