/* replica_core.h - the state of the thread that keeps the copy, for the files of this folder only.
 *
 *	notes of the spool   copies, barriers, orders             replica_notes.c
 *	pump()               files -> messages, while there is room   pump.c
 *	notes of the link    acknowledgements -> copies -> barriers, orders
 *
 * OWNERSHIP  replica_new() makes it.
 * THREAD     replica.
 * SEE        copy.h for how far each file is.
 */
#ifndef REPLICA_REPLICA_CORE_H
#define REPLICA_REPLICA_CORE_H

#include "base/buf.h"
#include "base/loop.h"
#include "replica/copy.h"
#include "replica/flight.h"
#include "replica/nats_link.h"
#include "replica/copy_orders.h"
#include "replica/epoch.h"
#include "replica/replica.h"
#include "replica/trouble.h"

#include "spool/spool.h"

#include <semaphore.h>
#include <stdatomic.h>

enum { SPARES = 4 }; /* messages of the largest size */

/* Of what is kept free by these. What is given up is given up for what is missing as a whole, or not for that: what is sent of
 * more than fits takes the room, and frees none. */
enum replica_room {
	ROOM_IS_THERE,
	ROOM_FOR_ALL,	 /* NATS is full: it is given up, and what is missing fits there */
	ROOM_FOR_OTHERS, /* more is missing: a part is given up, for rows of nodes. The log waits */
};

enum replica_phase {
	PHASE_SETTING_UP, /* a set-up is under way */
	PHASE_WAITING,	  /* for the next one, or for the connection */
	PHASE_RUNNING,
	PHASE_FENCED, /* another node has the queue: nothing is sent any more */
};

/* Some client waits for all that was written until then. */
struct barrier {
	struct list link;
	uint64_t number;
	int64_t since_ms;
	struct goals goals;
};

struct replica {
	struct conf *conf;
	struct spool *spool;
	struct loop *loop;
	struct nats_link *link;
	char *node;
	enum replica_phase phase;
	uint64_t epoch;		  /* 0: none yet */
	struct replica_epoch row; /* of this epoch: the stream says so, too */
	struct epoch_own own;	  /* with the last beat that was noted */
	bool beating;		  /* the next one is being noted */
	int beat_tries;		  /* it could not be, so often, one after the other */
	bool sent;		  /* something bears this one, but for a beat alone */
	int64_t beat_ms;	  /* loop's clock: nothing is sent after it that bears this one */
	uint64_t acked;		  /* the highest sequence that was acknowledged, */
	uint64_t acked_number;	  /* and of which message */
	uint64_t kept,
		anchor; /* two that are not purged by us, the newest that says what counts and the oldest that keeps room; 0: there is none */
	bool looking;	/* at the stream, */
	int64_t look_ms;	/* loop's clock: and when next */
	uint64_t lost;		/* messages that the engine says it has lost */
	bool shorter;		/* the stream has lost some of that */
	int spare;		/* messages that keep room in the stream */
	enum replica_room room; /* but for the first, new mail would take it */
	uint64_t
		made_room; /* number of the last message that was sent before; UINT64_MAX: it is being made */
	bool alone; /* deliveries begin that the stream is not told of: nothing else frees room */
	bool says_alone; /* the stream says so: who adopts the queue knows that it does not know all */
	bool told_alone;      /* the spool was told so, which is after that */
	bool heard;	      /* the spool has begun to wait again */
	uint64_t turns;	      /* how often it was told whether to */
	struct goals unheard; /* what was begun, or sent, until then */
	int64_t spare_ms;     /* loop's clock: no more of it before */
	int64_t unread_ms[2]; /* the same: nothing is read that is new, or older: it failed */
	uint64_t first;	      /* segment of this start */
	uint64_t begun;	      /* where BEGIN lies in the stream; 0: it is not there */
	bool complete;	      /* COMPLETE is there */
	bool completing;      /* it is among the orders */
	bool known;	      /* what was there before this start has been named */
	bool away;	      /* and the spool was told so */
	struct trouble trouble;
	char *denied; /* what NATS does not permit, as it was said since the last set-up began; or NULL */
	struct copies copies;
	struct flight flight;
	struct orders orders;
	struct goals named; /* large content that is there before the log goes on */
	struct list barriers;
	struct buf checkpoint; /* the last one */
	char *message;	       /* to build one in */
	int64_t progress_ms; /* steady clock: when something was acknowledged, or there was nothing to */
	int64_t patience_ms; /* for an acknowledgement */
	int64_t again_ms;    /* until the next set-up */
	struct timer tick, again;
	struct goals missed;	   /* while it is away: what must be there before it is back */
	struct replica_stop *stop; /* who waits for the end, or NULL */
	int64_t stop_ms;	   /* steady clock: when that one has waited enough */
	bool closing;		   /* nothing is done any more */
	atomic_bool whole, even, fenced; /* any thread: see replica_whole() and its neighbours */
};

enum { REPLICA_NOTE_STOP = NOTES_FROM(NOTES_OF_REPLICA), REPLICA_NOTE_EPOCH };

struct replica_begin { /* REPLICA_NOTE_EPOCH */
	struct note note;
	struct epoch_own own;
	struct replica_epoch row;
};

struct replica_stop {
	struct note note;
	sem_t *done;
	bool hands_over;
	bool whole; /* the answer */
};

void pump(struct replica *);				  /* send what there is room for */
void pump_acknowledged(struct replica *);		  /* see what has come to be there */
int pump_open_large(const struct replica *, uint64_t id); /* to be read; -1 and errno */
void replica_note_beat(struct replica *);		  /* the next one; one at a time */

void pump_beat(struct replica *,
	       uint32_t beat); /* it is noted: what is sent bears it, and something does */

void pump_make_room(
	struct replica *); /* in the stream, of what is kept for that: as much as helps */
void pump_no_spare(
	struct replica *); /* there is none for more of that: it is asked for in a while */
bool pump_fits(
	const struct replica *); /* what is missing, in the room that is kept; and it frees some */

void replica_notes_receive(void *replica, struct note *);

void replica_tell_spool(struct replica *, bool alone);
/* Whether the copy is away; alone: deliveries begin all the same. It answers, if they do not. */

void replica_resend(struct replica *); /* what is under way */

void replica_log_up(const struct replica *);
void replica_failed(struct replica *, const char *why);
/* Send that again after another set-up, or after the one that is under way. Logged, unless why is empty. */

void replica_complain(struct replica *, const char *of);
/* Logged, once; what is denied says more than that nobody answers. */

void replica_again(struct replica *); /* set up, in a while */

#endif
