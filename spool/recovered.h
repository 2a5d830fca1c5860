/* recovered.h - what the thread of recovery learns, and hands over.
 *
 *	recovered_read() each segment ... recovered_conclude()   then the note goes to the spool
 *
 * OWNERSHIP  recovered_free() ends it and what is left in it.
 * THREAD     that of recovery, until the note is posted; then spool.
 * SEE        spool/README.md, "What can be on disk".
 */
#ifndef SPOOL_RECOVERED_H
#define SPOOL_RECOVERED_H

#include "spool/adoption.h"
#include "spool/replay.h"
#include "spool/spool_core.h"

struct recovered {
	struct note note;
	struct spool *spool;
	struct replay replay;
	struct stub **stub; /* sorted; the envelope beside those that were being worked on */
	struct envelope **envelope;
	size_t n, working, damaged;
	size_t read;	     /* segments */
	int64_t large_bytes; /* of contents that have files of their own */
	struct given_back given_back;
	struct adoption adoption; /* of what is another node's until it is said to be ours */
	int64_t began_ms;
	int tries;	   /* after calls that have failed */
	bool orphans_left; /* files of no message, which are to be put aside and could not be */
	bool unsafe;	   /* the disk has failed: not all is known, or not all of it is stable */
};

void recovered_read(struct recovered *, size_t segment); /* by its place in replay */

void recovered_conclude(struct recovered *);
/* All has been read: say what each message is, and write off what is damaged. */

void recovered_disk_failed(struct recovered *, const struct segment *); /* errno says how */
/* Nothing is removed, or given up, because of what a failing disk has said: the next start may read
 * more. */

bool recovered_tries_again(struct recovered *);
/* A moment later; or it is enough. errno stays. */

void recovered_free(struct recovered *);

#endif
