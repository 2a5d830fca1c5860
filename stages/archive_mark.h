/* archive_mark.h - a mark in the header of each copy for an archive, by which its maker knows it again.
 *
 *	Sluice-Archived: ID MAC MAC ...		ID of the copy; a MAC for each address that it goes to
 *
 * Two relays whose archives are reached through each other would copy each other's copies for ever: Received fields
 * do not count there, for each copy is a new message around the one before. So a copy bears its own mark, and those of
 * the message in it; and what bears a mark of ours for an address is not copied to that address again.
 *
 * Nobody else can make such a mark: the key is random, and nowhere but in this process. Whoever can read copies
 * could take one for mail of theirs; it is worth something until the copy is as old as mail gets in the queue, or
 * the relay is started again. Then what is still going round is copied once more, which does no harm.
 *
 * OWNERSHIP  Embedded; archive_marks_fini().
 * THREAD     Any.
 * ERRORS     False: there is no randomness for a key. What is no mark is passed over.
 * SEE        archive.h; RFC 2104; docs/decisions/0084.
 */
#ifndef STAGES_ARCHIVE_MARK_H
#define STAGES_ARCHIVE_MARK_H

#include "stages/draft.h"

#define ARCHIVE_MARK_FIELD "Sluice-Archived"

enum {
	ARCHIVE_MARKS_MAX = 20,	    /* in a header: further ones are not seen */
	ARCHIVE_MARK_ADDRESSES = 50 /* in one: further addresses bear no mark */
};

struct archive_marks {
	struct buf text; /* the fields, as they go into a copy of the message */
};

void archive_marks_read(struct archive_marks *, const struct draft *); /* which is open */
void archive_marks_fini(struct archive_marks *);

bool archive_marks_has(const struct archive_marks *, const char *address, int64_t now_ms,
		       int64_t lifetime_ms);
/* Is there one that we have made for this address, in that time? */

bool archive_mark_put(struct buf *to, const struct envelope *copy); /* its own; the id is set */

#endif
