/* nats_link.h - our connection to NATS with JetStream: set up, write and have it acknowledged, purge.
 *
 *	nats_link_set_up() --> a thread of its own: connect, stream ---------> NATS_LINK_SET_UP
 *	nats_link_publish() -> the library's threads ----------------------> NATS_LINK_ACK
 *	nats_link_purge() ---> a thread of its own ------------------------> NATS_LINK_PURGED
 *	nats_link_note_beat()  the same, since disks block ----------------> NATS_LINK_BEAT
 *	nats_link_look() ----> a thread of its own ------------------------> NATS_LINK_LOOKED
 *	                       the connection is lost, or is there again --> NATS_LINK_DOWN, NATS_LINK_BACK
 *	                       a server does not permit something --------> NATS_LINK_DENIED
 *
 * The library calls back in threads of its own; what it says comes as a note. It connects again by itself;
 * what was not acknowledged by then may have been lost, and whether the stream is still ours is to be
 * asked by another nats_link_set_up().
 *
 * OWNERSHIP  Notes are the receiver's.
 * THREAD     nats_link_new(), _start(), _stop(), _free(): main. The rest: the receiver's.
 * ERRORS     In the notes; a text that is empty says that it went well.
 * SEE        format.h for what an epoch and a stream are.
 */
#ifndef REPLICA_NATS_LINK_H
#define REPLICA_NATS_LINK_H

#include "base/conf.h"
#include "base/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum nats_link_note_type {
	NATS_LINK_SET_UP = NOTES_FROM(NOTES_OF_NATS_LINK),
	NATS_LINK_DOWN,
	NATS_LINK_BACK,
	NATS_LINK_DENIED, /* with an error: the same connection may not do that any more */
	NATS_LINK_ACK,
	NATS_LINK_PURGED,
	NATS_LINK_BEAT,
	NATS_LINK_LOOKED,
};

enum { NATS_LINK_ERROR = 160 };

struct nats_link_note {
	struct note note;
	char error[NATS_LINK_ERROR];
	bool fenced; /* SET_UP: the stream takes what is of a later epoch of ours */
	bool fresh;  /* SET_UP: there was no such stream: nothing is in it. LOOKED: there is none */
	bool mended; /* SET_UP: limits that take messages away were lifted. LOOKED: they stand there */
	uint64_t epoch;	      /* SET_UP */
	bool alone;	      /* SET_UP: the stream says so, enum replica_alone */
	uint64_t first, last; /* SET_UP, LOOKED: sequences of the stream, */
	uint64_t lost;	      /* and how many messages it says it has lost */
	uint64_t acked;	      /* LOOKED: as it was asked for */
	bool full;	      /* ACK, with an error: there is no room */
	uint32_t beat;	      /* BEAT: that was noted; 0: it was not */
	uint64_t number;      /* ACK: of nats_link_publish() */
	uint64_t sequence;    /* ACK: of the message in the stream */
};

struct nats_link;

struct nats_link *nats_link_new(const struct conf *, const char *node, struct loop *to);
void nats_link_start(struct nats_link *);
void nats_link_stop(struct nats_link *);
void nats_link_free(struct nats_link **);

struct replica_epoch;

void nats_link_set_up(struct nats_link *, const struct replica_epoch *, bool anew);
/* Connect, if need be, or anew, and have the stream take what is of that epoch, and say that we have it. One at a time. */

const char *nats_link_publish(struct nats_link *, const char *subject, uint64_t number,
			      const void *message, size_t len);
/* After a set-up that went well. Why it can't be sent now; NULL: it is. It may block for as long as a server that does
 * not read is waited for: NATS_LINK_WRITE_MS. */

enum { NATS_LINK_WRITE_MS = 2000 };

void nats_link_look(struct nats_link *, uint64_t acked);
/* How the stream is: nothing is changed. acked comes back. One at a time. */

struct epoch_own;

void nats_link_note_beat(struct nats_link *, const char *spool, const struct epoch_own *);
/* In the folder of the queue. The path stays. One at a time. */

void nats_link_purge(struct nats_link *, const char *subject, uint64_t before, uint64_t keep);
/* Purge messages that have this subject, which may be empty for all, and lie before that sequence number, which may be 0 for
 * all; or all but the last `keep` of them. One at a time. */

#endif
