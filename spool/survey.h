/* survey.h - one segment read to its end, and what is wrong in it.
 *
 *	survey_segment() -- each right record --> replay
 *	       |
 *	       +---> regions: damaged, or torn
 *
 * What was being written when the machine stopped is torn, and no damage: nobody had been told that it
 * was there. What lies where a segment says that it was synced is damage.
 *
 * OWNERSHIP  survey_fini() frees the regions. The segment stays the caller's.
 * THREAD     Whoever has the segments.
 * ERRORS     What can't be read counts as damage.
 * SEE        spool/README.md, "What can be on disk".
 */
#ifndef SPOOL_SURVEY_H
#define SPOOL_SURVEY_H

#include "spool/replay.h"

struct region {
	uint64_t from, to;
	uint64_t id;   /* whose record it was, or 0 */
	bool damage;   /* else torn */
	bool followed; /* by right records */
};

struct survey {
	struct region *region;
	size_t n;
	uint64_t end;	 /* of the last right record */
	bool sealed;	 /* that one says that nothing follows */
	bool unreadable; /* the disk failed somewhere */
	bool cut_short;	 /* it was made larger than it is, and nobody has said that it ends here */
};

void survey_segment(struct survey *, struct replay *, size_t i);
/* The segment of that index in replay->segment. Says up to where it was synced in its `said`. */

void survey_fini(struct survey *);

#endif
