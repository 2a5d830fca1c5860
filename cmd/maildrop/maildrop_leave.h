/* maildrop_leave.h - sendmail's side of the maildrop: leave a message there, for the relay to take.
 *
 *	.ID  written, synced  -->  ID, renamed  -->  the folder synced  -->  the caller may exit with 0
 *
 * The folder takes files from everybody and shows none, so most who leave one can't open it to
 * sync it: then the whole file system is synced instead. A file gets the folder's group, which is
 * the relay's, and may be read by that.
 *
 * OWNERSHIP  Nothing is kept.
 * THREAD     Main; it blocks while the disk does.
 * ERRORS     An exit status, and a sentence in error: EX_TEMPFAIL when there is no room or no
 *            maildrop, others as submit() for what the relay would refuse. What was begun is
 *            removed.
 * SEE        maildrop.h, maildrop_form.h.
 */
#ifndef CMD_MAILDROP_MAILDROP_LEAVE_H
#define CMD_MAILDROP_MAILDROP_LEAVE_H

#include "cmd/maildrop/submit.h"

int maildrop_leave(const struct conf *, const struct submission *, struct buf *error);

#endif
