/* nats_setup.h - what must be there before anything is replicated: a connection, and the node's stream.
 *
 * Calls that block: for a thread that nobody waits for. Once its owner ends none is begun any more.
 *
 * What a server does not permit it says later, in a message of its own, to whoever has asked for something; the question itself
 * stays without an answer. What was refused is not tried again by that connection, whatever is permitted since.
 *
 * OWNERSHIP  Embedded; nats_setup_close() ends what was opened.
 * THREAD     One at a time, but that a connection may be written to by another one meanwhile.
 * ERRORS     The library's status; nats_GetLastError() has more. NATS_DRAINING: the owner ends.
 */
#ifndef REPLICA_NATS_SETUP_H
#define REPLICA_NATS_SETUP_H

#include "base/conf.h"
#include "replica/format.h"
#include "replica/nats_files.h"

#include <nats/nats.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct nats_callbacks { /* from threads of the library; each may be NULL */
	void (*disconnected)(void *owner);
	void (*reconnected)(void *owner);
	void (*denied)(void *owner, const char *what); /* nats_setup_denial() */
};

struct nats_watch;

struct nats_setup {
	const struct conf_cluster *conf;
	char *node;
	int64_t wait_ms;	    /* for an answer */
	const atomic_bool *ends;    /* the owner does; NULL: it says so otherwise */
	natsConnection *connection; /* NULL until the first one has come to be */
	jsCtx *js;
	struct nats_files files;  /* that it was made with */
	struct nats_watch *watch; /* whom the connection calls; NULL as long as there was none */
};

void nats_setup_init(struct nats_setup *, const struct conf *, const char *node);
/* The configuration must stay. */
void nats_setup_close(struct nats_setup *);
/* Nobody is called back after it. */
void nats_setup_fini(struct nats_setup *);

natsStatus nats_setup_connect(struct nats_setup *, const struct nats_callbacks *, void *owner);
/* If there is no connection yet. Afterwards the library keeps it up, but where nats_setup_is_over(). The callbacks stay, and may be
 * NULL. */

bool nats_setup_is_over(const struct nats_setup *);
/* The connection does not come back: the library gives up who was refused twice, as by credentials that have expired; or it
 * is lost, and would be made again with files that are others by now. It is to be closed, and another one made. */

void nats_setup_await_end(sem_t *);
/* Until a thread of the library, which posts it, has called us for the last time: it has half a minute. */

bool nats_setup_ends(const struct nats_setup *);

enum { NATS_SETUP_DENIAL = 160 };

void nats_setup_denial(char text[NATS_SETUP_DENIAL], const char *said);
/* In our words where it is known what is denied. said: by the server. The same text for each inbox, which has another name every
 * time. */

bool nats_setup_denied(const struct nats_setup *, char text[NATS_SETUP_DENIAL]);
/* The last that a server has said by this connection is that it does not permit something: the same text. */

enum { NATS_SETUP_LEADER = 128 };

struct nats_stream {
	bool fresh;	   /* it was made */
	bool mended;	   /* limits that take messages away stood there; they are lifted */
	const char *wrong; /* what it is that can't be changed: a text; or NULL */
	uint64_t first,
		last; /* sequence numbers in it; of an empty one the first is that of the next */
	uint64_t messages; /* how many there are; numbers may be missing between them */
	uint64_t lost;	   /* messages that the server has found to be lost */
	bool alone;	   /* it says so now: enum replica_alone */
	char leader[NATS_SETUP_LEADER]; /* the server that has told it; "" of a server alone */
};

natsStatus nats_setup_stream(struct nats_setup *, const struct replica_epoch *claim,
			     struct nats_stream *);
/* Have the stream of this node, which takes what is of that epoch and nothing else, and says who has the queue.
 * NATS_ILLEGAL_STATE: it takes what is of a later one, or says that another has it: epoch_is_later(). NATS_TIMEOUT: no answer, or
 * the epoch of this node is over (base/fence.h); then nothing is written. NATS_INVALID_ARG: it is what none of ours may be, see
 * wrong. */

natsStatus nats_setup_look(struct nats_setup *, struct nats_stream *);
/* At the stream of this node, as it is; nothing is changed. fresh: there is none. mended: limits stand there. */

/* Whoever renews an epoch beside it waits for a part of wait_ms only: another server's streams may be those that do not
 * answer. */
enum { NATS_SETUP_BRIEFLY = 4 };

natsStatus nats_setup_claim(struct nats_setup *, const char *node, struct replica_epoch *claim,
			    bool *there);
/* Who has the queue of that node, as its stream says. Not there: no stream, or one that says nothing. */

bool nats_setup_nodes(struct nats_setup *, void (*found)(void *owner, const char *node),
		      void *owner);
/* All that have a stream, as far as the server says. False: it does not. */

const char *nats_setup_text(natsStatus);
/* The error in words, as the server said it where it is one of JetStream's errors; of the last call in this thread. Until the
 * next one. */

natsStatus nats_setup_look_settled(struct nats_setup *, const struct nats_stream *was,
				   struct nats_stream *is);
/* At a stream that was as has been seen just now: what is told counts all that was acknowledged before. A server that has just become
 * the leader answers questions before it has done all that the one before it had acknowledged, and where there is none any may
 * answer; what is to be changed the leader does behind all that (decision 0219). Nothing is changed. NATS_TIMEOUT: no answer, or it
 * has another leader than it had. One that is what none of ours may be is told as it is: it may deny this. */

natsStatus nats_setup_last(struct nats_setup *, uint64_t *epoch, uint32_t *beat);
/* Of the last message of ours that the stream has, whatever its epoch; 0: there is none. NATS_TIMEOUT: no answer, or it has
 * another leader since it was asked. */

natsStatus nats_setup_purge(struct nats_setup *, const char *subject, uint64_t before,
			    uint64_t keep);
/* See nats_link_purge(). */

#endif
