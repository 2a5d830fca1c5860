/* format.h - what of a node's queue lies in the engine (NATS JetStream), and how it is called there.
 *
 * A node has a stream of its own. Most messages in it say "these bytes lie there", in a segment of the log
 * or in a file of large content; whoever writes all that count, in the order of the stream, into files of
 * the same names, and the last checkpoint that counts into log/checkpoint, has the folder of that queue as
 * recovery wants it. A message that comes twice changes nothing.
 *
 *	stream   sluice-NODE
 *	subject  sluice.NODE.EPOCH.log.SEQ     REPLICA_LOG, REPLICA_MARKS; SEQ: 16 hexadecimal digits
 *	         sluice.NODE.EPOCH.large.ID    REPLICA_LARGE, REPLICA_LARGE_END; ID as in large/
 *	         sluice.NODE.EPOCH.state       REPLICA_BEGIN, _COMPLETE, _CHECKPOINT, _BEAT
 *	         sluice.NODE.EPOCH.spare       REPLICA_SPARE
 *	         its description: struct replica_epoch of who has the queue; replica_claim()
 *	bucket   sluice-nodes                  key NODE: struct replica_epoch
 *
 *	message: head (64 bytes) | payload
 *
 * What is needed no more is purged by its subject: a segment or large file without messages is not there.
 * So the stream is as large as the queue on disk, whatever waits there for days.
 *
 * **Epochs.** Each start of a node takes a new epoch, in the bucket, and sets the subjects of its stream to
 * those of that epoch alone: whoever writes with an older one is told that nobody listens. A node that
 * adopts the stream does both. What the stream holds of older epochs stays until it is purged.
 *
 * **What counts.** A start sends all that its log holds once more, with what it has mended, beside new mail:
 * BEGIN says that it has begun, COMPLETE that all of it is there. Of the last epoch with a COMPLETE
 * everything counts, and nothing of older ones, which are purged then. Of each later one, which has a BEGIN
 * only, these count: segments with the number that BEGIN names, and higher ones, which are new; and files
 * of large content that older ones have not. What it sends of older segments may say that something is
 * dead whose successor is not there yet. Content that was moved while nothing could be sent may be missing where a new envelope says;
 * it lies where it was before then (spool/older_copy.h). Where no epoch has a COMPLETE, the first ended before its queue
 * was there: the same holds. Where none has one and the messages of one begin without BEGIN, the engine has lost what was before:
 * what is left says nothing, and the stream is hollow.
 *
 * **Order.** Nothing of an epoch is sent before its BEGIN is known to be there: what lies before that is purged. The bytes of
 * one segment come in order, but more than one message is under way: after a
 * failure a later one may be there and an earlier one not, until it is sent again. Nobody was told then that
 * the mail in it is safe. MARKS and CHECKPOINT are sent, and purges asked for, when all is there that was written
 * before: so what they say is dead has left its successor, or is done. A checkpoint also names as gone each segment whose purge is
 * still to come, since it may pass over what says that the messages in it are dead. Where large content was withdrawn before it was
 * there, the log is sent from its newest segment to its oldest, until all that it said then is there (copies_rush()): so that no
 * envelope that names it comes in before what withdraws it. A large file is there before the
 * envelope that names it is sent; without LARGE_END it is not whole, and with it only when all has been read: what went by
 * another connection may come behind it. Likewise what was withdrawn when a write or sync failed is what lies behind the record that
 * ends its segment, which is sent after it.
 *
 * **Beats.** A number that the folder of the queue notes, on stable storage, before any message bears it; of the same epoch
 * it only grows. So a folder that has a lower one than the last message of its life in the stream is not what wrote
 * that: it comes from a backup, or is a copy. None is borne for longer than two seconds: what follows a pause waits for the next,
 * and goes without for as long if the disk takes none in half a second.
 *
 * OWNERSHIP  The caller's.
 * THREAD     Any. Bytes in, numbers out.
 * ERRORS     Decoders return false for what is not whole and right.
 * SEE        spool/README.md for what the bytes say.
 */
#ifndef REPLICA_FORMAT_H
#define REPLICA_FORMAT_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

#define REPLICA_BUCKET "sluice-nodes"
#define REPLICA_SPARE_END ".spare" /* of the subject */

enum {
	REPLICA_HEAD = 64, /* bytes */
	REPLICA_MESSAGE_MAX =
		1 << 20, /* bytes: the limit of the stream, and of an engine by default */
	REPLICA_PIECE = (1 << 20) - 4096, /* bytes of payload at most */
	REPLICA_NODE_MAX = 64,		  /* bytes of a node's name */
	REPLICA_TOKEN = 3 * REPLICA_NODE_MAX + 1,
	REPLICA_ROW_MAX = 4096, /* bytes of a row in the bucket, or more than it has */
};

enum replica_type {
	REPLICA_BEGIN = 1, /* of: the first segment of this start */
	REPLICA_LOG,	   /* payload: bytes of segment `of` at `offset`, its head among them */
	REPLICA_MARKS, /* payload: offsets (4) of records in segment `of` that get RECORD_GARBAGE */
	REPLICA_LARGE, /* payload: bytes of large/`of` at `offset` */
	REPLICA_LARGE_END,  /* all of large/`of`, `size` bytes, has been sent */
	REPLICA_COMPLETE,   /* payload: log/checkpoint; empty: there is none */
	REPLICA_CHECKPOINT, /* the same, a newer one */
	REPLICA_BEAT,	    /* nothing but its beat */
	REPLICA_SPARE	    /* nothing: it keeps room that is given up when there is no other */
};

/* little-endian:  0 magic (4)  4 type (1)  5 zeros (3)  8 epoch (8)  16 number (8)  24 of (8)
 * 32 offset (8)  40 size (8)  48 length (4)  52 CRC32C of the payload (4)  56 beat (4)
 * 60 CRC32C of the 60 bytes before (4) */
struct replica_head {
	enum replica_type type;
	uint64_t epoch;
	uint64_t number; /* of this message in its epoch, in the order in which they were sent */
	uint64_t of;	 /* sequence number of a segment, or id of a large file */
	uint64_t offset;
	uint64_t
		size; /* LOG: bytes that the segment's file has; LARGE, LARGE_END: of the whole content */
	uint32_t length; /* of the payload */
	uint32_t crc;	 /* of the payload */
	uint32_t beat;
};

void replica_head_put(uint8_t head[REPLICA_HEAD], const struct replica_head *);

bool replica_message_get(const void *message, size_t len, struct replica_head *,
			 const uint8_t **payload);
/* payload points into the message. False: it is not of this format, or damaged. */

/* Names. A node's token is its name with each byte but letters, digits, "-" and "_" as "=" and two
 * hexadecimal digits. The name has at most REPLICA_NODE_MAX bytes. */
const char *replica_token(const char *node, char token[REPLICA_TOKEN]);
bool replica_token_parse(const char *token, char node[REPLICA_NODE_MAX + 1]);
char *replica_stream(const char *node);
bool replica_stream_parse(const char *stream, char node[REPLICA_NODE_MAX + 1]);
char *replica_subjects(const char *node, uint64_t epoch); /* all of that epoch */
char *replica_subject(const char *node, uint64_t epoch, enum replica_type, uint64_t of);

/* A node's row in the bucket; JSON: {"epoch":7,"state":"up","by":"NODE","seen_ms":1700000000000,
 * "lease_ms":30000,"life":"0123456789abcdef","number":3,"since":5,
 * "ids_us":1700000001000000,"with":"NODE","ahead_ms":7200000}, the last two where there is such a node, and where clocks differ. A key "number.N" holds the token of the node whose
 * ids end in that number (base/ident.h); it stays for ever. */
enum replica_state {
	REPLICA_UP,
	REPLICA_ADOPTING, /* `by` took this epoch, and is taking the queue */
	REPLICA_ADOPTED,  /* `by` took this epoch, and has the queue */
	REPLICA_DRAINED,  /* the node has handed over its queue and ended */
	REPLICA_RETIRED,
	REPLICA_STATES
};
const char *replica_state_name(enum replica_state);

/* Of a stream only. */
enum replica_alone {
	ALONE_AS_BEFORE, /* written: whatever it says of that; read: it is not */
	ALONE_SAID, /* its node goes on without it: any message in it may have been begun, or sent */
	ALONE_PAST  /* written: it is so no more */
};

struct replica_epoch {
	uint64_t epoch;
	enum replica_state state;
	char by[REPLICA_NODE_MAX + 1]; /* who wrote this */
	int64_t seen_ms; /* wall clock of whoever wrote it; 0: it was written again from a stream */
	int64_t lease_ms; /* how long the node believes in this; 0: nobody adopts it unasked */
	uint64_t life;	  /* which folder of a queue has that epoch, a random number */
	unsigned number;  /* of the node, in its ids */
	uint64_t
		ids_us; /* the node has given no id of this microsecond or a later one; 0: who knows */
	uint64_t
		since; /* the first epoch of that life: what the stream has of older ones was adopted */
	enum replica_alone alone;
	/* ADOPTING, in the bucket only: some of it may lie in that node's queue, which `by` is taking, too; or "". */
	char with[REPLICA_NODE_MAX + 1];
	int64_t ahead_ms; /* the same: the clock by which that queue was written is so much ahead of that of `by` */
};

void replica_epoch_put(struct buf *, const struct replica_epoch *);
bool replica_epoch_get(const char *json, size_t len, struct replica_epoch *);

/* The same in the description of the stream: key=value, and by a token; "alone=1" at its end. The client library puts it into JSON as it is. */
char *replica_claim(const struct replica_epoch *);
bool replica_claim_get(const char *text, struct replica_epoch *);

#endif
