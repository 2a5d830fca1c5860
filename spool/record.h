/* record.h - the frame of a record, and the head of a segment.
 *
 *	record:   magic type flags length id payload-crc head-crc | payload | zeros to the next 8
 *	segment:  head | zeros | the head again | zeros | record | record | ... | zeros
 *
 * The head of a record has a CRC of its own, so that a damaged payload still tells whose it was and
 * where the next record begins. That CRC starts from a number made of the segment's head: a record
 * left from another life of the file never passes. The flags lie outside both.
 *
 * Bytes in, numbers out: no I/O.
 *
 * THREAD     Any.
 * ERRORS     Decoders return false for what is not whole and right.
 * SEE        spool/README.md, "Records".
 */
#ifndef SPOOL_RECORD_H
#define SPOOL_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	RECORD_HEAD = 24,  /* bytes */
	SEGMENT_HEAD = 64, /* bytes */
	SEGMENT_HEAD_AGAIN =
		4096, /* where its copy lies: no record can be read without one of them */
	SEGMENT_FLAGS_AT =
		67, /* flags of the segment; they count where those behind the copy agree */
	SEGMENT_BEGIN = 8192, /* where the first record lies */
	SEGMENT_VERSION = 2,
	SEGMENT_VERSION_OLDEST = 1, /* can be read still */
};
#define RECORD_PAYLOAD_MAX UINT32_C(0x7ffffff0)

enum record_type {
	RECORD_CONTENT = 1,
	RECORD_ENVELOPE,
	RECORD_START,
	RECORD_DELIVERY,
	RECORD_REPLACEMENT,
	RECORD_FINISH,
	RECORD_SYNCED, /* all before an offset is on stable storage */
	RECORD_END,    /* nothing follows in this segment */
	RECORD_FILLER, /* what a crash or damage has left, known already */
	/* 10 and above are for what is to come; a reader skips what it does not know. */
};

enum {
	RECORD_GARBAGE = 1
}; /* flags: what this envelope, or any in this segment, says holds no more */
enum { RECORD_FLAGS_AT = 3 }; /* where in the head they lie */

struct record {
	uint8_t type;
	uint8_t flags;
	uint32_t length; /* of the payload */
	uint64_t id;	 /* of the message */
	uint32_t crc;	 /* of the payload */
};

struct segment_head {
	uint32_t version, lane;
	uint64_t seq;
	uint64_t created; /* an id */
	uint64_t salt;	  /* random */
	uint32_t first;	  /* 1: the first that a start made in this lane */
	uint32_t reused; /* 1: what follows the last record may be of an earlier life of the file */
	uint64_t size;	 /* bytes that it was made with; 0 in version 1 */
};

static inline uint64_t record_size(uint32_t length)
{
	return (RECORD_HEAD + (uint64_t)length + 7) & ~(uint64_t)7;
}

void record_put(uint8_t head[RECORD_HEAD], uint32_t seed, const struct record *);
bool record_get(const uint8_t head[RECORD_HEAD], uint32_t seed, struct record *);

void segment_head_put(uint8_t head[SEGMENT_HEAD], const struct segment_head *);
bool segment_head_get(const uint8_t head[SEGMENT_HEAD], struct segment_head *);
uint32_t segment_head_seed(const struct segment_head *);

#endif
