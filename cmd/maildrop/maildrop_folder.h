/* maildrop_folder.h - the folders of the maildrop.
 *
 * OWNERSHIP  Embedded in struct maildrop.
 * THREAD     maildrop_folder_open(): main, with the rights of the relay's user. The rest: maildrop.
 * ERRORS     Said where they can occur; a file that can't be moved stays, and is told of once.
 * SEE        maildrop.h.
 */
#ifndef CMD_MAILDROP_MAILDROP_FOLDER_H
#define CMD_MAILDROP_MAILDROP_FOLDER_H

#include "base/buf.h"
#include "base/list.h"
#include "cmd/maildrop/maildrop_take.h"

enum {
	MAILDROP_BATCH = 50,		 /* files taken at a time */
	MAILDROP_NAMES_MAX = 1000,	 /* names read at a time */
	MAILDROP_UNFINISHED_S = 60 * 60, /* a file being written that is older is nobody's */
};

struct maildrop_folder {
	int drop, taken, quarantine; /* descriptors */
	bool told;		     /* of one that can't be moved */
};

bool maildrop_folder_open(struct maildrop_folder *, const char *spool, struct buf *error);
/* A maildrop that is made here gets its mode, and the spool's folder the right to pass through it;
 * what an operator has made of them stays, but for a spool that every user may write to. */

void maildrop_folder_close(struct maildrop_folder *);

void maildrop_folder_claim(struct maildrop_folder *, struct list *takes);
/* Move up to MAILDROP_BATCH of the oldest files to taken/, and put aside what is none of ours. */

bool maildrop_folder_sync(struct maildrop_folder *); /* what was claimed */

void maildrop_folder_left(struct maildrop_folder *, struct list *takes);
/* Those that an earlier start had claimed. */

void maildrop_folder_put_aside(struct maildrop_folder *, const struct take *);
/* To quarantine/, with a line in the log. */

void maildrop_folder_drop(const struct maildrop_folder *, const struct take *);
/* Removed, with a line in the log: a filter wants it so. */

#endif
