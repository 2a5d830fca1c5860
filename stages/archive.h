/* archive.h - a copy for the archive of what comes in: the last stage of its way to the queue.
 *
 *	message, as it will be stored --> copy: its envelope in words, the message itself --> signed
 *	                                        |
 *	                    draft.with, stored in one batch with the message, or neither is
 *
 * A copy has an envelope of its own, to the archive, and is a message like others from there on, but that it
 * is never given up (envelope.archive). Nothing that we have written ourselves is copied, and so no copy is.
 * Mail to the archive's own address and to nobody else is not copied either: it is there. What another relay has made
 * of a copy of ours is not copied to the same address again (archive_mark.h).
 *
 * OWNERSHIP  Nothing of its own; the copy belongs to the draft.
 * THREAD     The passage's, and a thread of the pool where a large message is copied, or a copy signed.
 * ERRORS     A copy that can't be made fails the passage: the message is tried again, never taken without.
 * SEE        archive_report.h; conf_table.h, CONF_ARCHIVE.
 */
#ifndef STAGES_ARCHIVE_H
#define STAGES_ARCHIVE_H

#include "stages/stages.h"

extern const struct passage_stage
	archive_stage; /* its context: the stage that signs copies, or NULL */

bool archive_wanted(const struct conf *); /* may any mail be copied? */

#endif
