/* spool_check.h - reads a whole queue while no relay is running, and reports its faults.
 *
 *	log/    each segment --> survey --> regions    --> found()
 *	                            |
 *	                            +--> replay --> each message --> verify --> found()
 *	large/  each file: whose is it?                                     --> found()
 *
 * It is what a start would read, and what a start passes over as well; each content is read to its
 * end. Nothing on disk is changed.
 *
 * OWNERSHIP  A finding is good until found() returns.
 * THREAD     All in the caller's; the queue is locked meanwhile.
 * ERRORS     False, with a sentence in error, when it can't be checked: another process has it, this
 *            program does not know its format, or the disk does not let it be read. What is wrong
 *            in the queue is a finding.
 * SEE        repair.h; spool/README.md, "What can be on disk".
 */
#ifndef SPOOL_SPOOL_CHECK_H
#define SPOOL_SPOOL_CHECK_H

#include "spool/spool.h"

enum check_fault {
	CHECK_DAMAGED, /* records that are not right and had been synced */
	CHECK_TORN,  /* the same, not known to be synced: a crash leaves it, and it costs nothing */
	CHECK_SHORT, /* a segment ends before its end */
	CHECK_HEAD,  /* one head of a segment, or both */
	CHECK_MISSING,	  /* a segment that the checkpoint names */
	CHECK_CHECKPOINT, /* is damaged */
	CHECK_FOREIGN,	  /* a file that nothing here makes */
	CHECK_MESSAGE,	  /* can't be delivered */
	CHECK_ORPHAN,	  /* a file in large/ without a message */
};
const char *check_fault_name(enum check_fault);

struct check_finding {
	enum check_fault fault;
	const char *folder, *file; /* "log" or "large", and the name in there */
	uint64_t seq;		   /* of the segment that it lies in; 0: of none */
	uint64_t offset, bytes;	   /* bytes 0: it is about the whole file */
	uint64_t id;		   /* whose it is, if that can be told; else 0 */
	const char *reason;
	bool left; /* still there after a repair */
};

struct check_summary {
	int format; /* 0: there is no queue yet */
	uint64_t segments;
	uint64_t bytes, needed; /* of log/ and large/; needed by what is in the queue */
	uint64_t messages[SPOOL_HOLD + 1];
	uint64_t recipients; /* that are left */
	uint64_t oldest;     /* id; 0: the queue is empty */
	int64_t oldest_ms;   /* when that came */
	uint64_t faults, repaired;
};

struct check {
	void (*found)(void *owner, const struct check_finding *);
	void *owner;
	bool after_repair;
	struct check_summary summary;
};

bool spool_check(const struct conf *, struct check *, struct buf *error);
/* found, owner and after_repair are set; the rest is the answer. */

#endif
