/* payload.h - the contents of records: envelopes, starts, deliveries.
 *
 * Bytes in, structs out: no I/O.
 *
 * OWNERSHIP  Decoded envelopes and deliveries are the caller's.
 * THREAD     Any.
 * ERRORS     Decoders return NULL or false for anything that is not exactly what an encoder writes;
 *            what a count or length claims is checked against the bytes there are before memory
 *            is taken for it.
 * SEE        spool/README.md, "Payloads".
 */
#ifndef SPOOL_PAYLOAD_H
#define SPOOL_PAYLOAD_H

#include "base/buf.h"
#include "base/envelope.h"
#include "spool/spool.h"

enum {
	PAYLOAD_START = 4, /* bytes */
	PAYLOAD_START_1 = 16,
	PAYLOAD_ENVELOPE_HEAD = 64,
	PAYLOAD_SYNCED = 8,
	PAYLOAD_FINISH = 8,	 /* or nothing, */
	PAYLOAD_FINISH_SOME = 4, /* or this */
};

/* Where the content of a message lies, and what belongs to it. */
struct content_place {
	bool own_file;	 /* in large/, named by the id; seq and offset are 0 */
	uint64_t seq;	 /* segment */
	uint64_t offset; /* of its record in there */
	uint64_t
		partner; /* id of another, in the same batch: spool_store.with, or whose that is; or 0 */
};

/* The part of an envelope that recovery needs. */
struct envelope_head {
	struct content_place content;
	uint64_t size;
	int64_t due_ms;
	uint32_t rounds, generation;
	bool held;
};

/* Each envelope of a message has a generation, one more than the one that it replaces, and what is
 * recorded against it names that: so the records of a message may lie in any order. In version 1 of
 * the format there is none (0), and the order is that of the log. */
void payload_put_envelope(struct buf *, const struct envelope *, const struct content_place *,
			  uint32_t generation);
bool payload_get_envelope_head(const void *, size_t len, struct envelope_head *);
struct envelope *payload_get_envelope(uint64_t id, const void *, size_t len);

void payload_put_start(struct buf *, uint32_t generation);
bool payload_get_start(const void *, size_t len, uint32_t *generation);
bool payload_get_start_1(const void *, size_t len, uint64_t *seq, uint64_t *offset);
/* In version 1: where the envelope lies. */

void payload_put_finish(struct buf *, uint64_t partner);
uint64_t payload_get_finish(const void *, size_t len);
/* partner: it was refused after all, so that this one is done, too; 0: each goes its way. */

void payload_put_finish_to(struct buf *, uint32_t generation);
bool payload_get_finish_to(const void *, size_t len, uint32_t *generation);
/* The record ends envelopes up to that generation, and what comes later under the same id lives. Without, it ends all. */

void payload_put_delivery(struct buf *, const struct spool_delivered *, uint32_t generation);
struct spool_delivered *payload_get_delivery(uint64_t id, const void *, size_t len,
					     uint32_t *generation);
struct spool_delivered *payload_get_delivery_1(uint64_t id, const void *, size_t len);

void payload_set_synced(uint8_t payload[PAYLOAD_SYNCED], uint64_t offset);
bool payload_get_synced(const void *, size_t len, uint64_t *offset);

void delivered_free(struct spool_delivered *);
void delivered_apply(const struct spool_delivered *, struct envelope *);
/* Count it into the envelope. A recipient is done once its message is sent, unless its sender asked
 * to be told of that, and may not have been; whoever has failed is not done until the bounce is written. */

#endif
