/* layout.h - the folders and files of a queue.
 *
 *	lock        held by the process that has the queue
 *	format      which version of the format this is
 *	log/        segments, SEQ.seg
 *	large/      contents of large messages, named by the id
 *	quarantine/ what was found damaged
 *	taken/      messages of the maildrop that are not stored yet, named by their ids
 *
 * THREAD     main, before the spool's thread runs.
 * ERRORS     False, with a sentence in error.
 */
#ifndef SPOOL_LAYOUT_H
#define SPOOL_LAYOUT_H

#include "spool/spool_core.h"

#define LAYOUT_LARGE "large"

bool layout_format(int fd, const char *spool, int *version, struct buf *error);
/* The format that the file names; 0: it is empty. False when this program does not know it. */

bool layout_open(struct spool *, struct buf *error); /* what is missing is made */
bool layout_segments(struct spool *, struct buf *error);
/* Enter the segments that are there into the journal, to be recovered; no id that is given out from
 * now on is below one that they can hold. */
void layout_close(struct spool *);

#endif
