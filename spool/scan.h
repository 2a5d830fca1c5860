/* scan.h - read a segment from its beginning to its end, whatever is in it.
 *
 * RECORD_SYNCED, RECORD_END and RECORD_FILLER are understood here, and not shown. A record whose CRCs are wrong is skipped: the next right one is looked for, behind it if its head
 * can be believed, else at every multiple of 8.
 *
 * OWNERSHIP  What scan_next() shows is good until the next call.
 * THREAD     One a scan.
 * ERRORS     Pages that the disk can't read count as zeros, that is as damage.
 */
#ifndef SPOOL_SCAN_H
#define SPOOL_SCAN_H

#include "spool/record.h"

enum scan_result {
	SCAN_RECORD,
	SCAN_DAMAGE, /* right records follow */
	SCAN_TORN,   /* nothing right follows: the last write before a crash, as a rule */
	SCAN_END,    /* RECORD_END, or only zeros, or nothing */
};

struct scan {
	int fd;
	uint32_t seed;
	uint64_t size; /* of the file */
	uint64_t next; /* where to go on */
	struct record record;
	const uint8_t *payload;
	uint64_t from, to; /* the record, or the damage */
	uint64_t damaged;  /* whose record it was, where that can be told; else 0 */
	uint64_t synced;   /* up to where its own records say that it was on stable storage */
	bool sealed;	   /* it ends with RECORD_END */
	bool begun;	   /* torn: the head of a record is right there */
	bool unreadable;   /* the disk failed somewhere */
	uint8_t *window;
	uint64_t window_at;
	size_t window_len, window_cap;
};

void scan_init(struct scan *, int fd, uint32_t seed, uint64_t size);
void scan_fini(struct scan *);
enum scan_result scan_next(struct scan *);

#endif
