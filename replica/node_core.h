/* node_core.h - the state of the thread "node", for its own files only.
 *
 *	node.c        the thread: its epoch, its orders
 *	node_adopt.c  the others' queues
 *	node_left.c   what a former start had taken of them
 *	node_view.c   what the operator sees of them
 *
 * THREAD     node, but for what is marked.
 */
#ifndef REPLICA_NODE_CORE_H
#define REPLICA_NODE_CORE_H

#include "replica/life.h"
#include "replica/node.h"
#include "replica/roster.h"

#include <pthread.h>
#include <stdatomic.h>

enum node_state { NODE_WAITING, NODE_UP, NODE_GONE };

/* One of those whose queues are taken together. */
struct node_unit {
	char node[REPLICA_NODE_MAX + 1];
	struct replica_epoch row; /* by which we take it */
	bool named;		  /* its row has named us when all was taken */
	bool lost;		  /* it names another since; and that was logged */
	bool again;		  /* we have had it by that epoch, and NATS has lost that */
	bool insists, hollow;	  /* harvest.h */
	uint64_t end; /* of its stream: nothing behind that is of the queue that is taken */
};

struct node_denial { /* NODE_DENIED, from a thread of NATS */
	struct note note;
	char what[NATS_SETUP_DENIAL];
};

/* The thread "adopt", while it runs. */
struct node_taking {
	bool runs;
	pthread_t thread;
	struct transfer *transfer;
	struct node_unit *unit;
	int n;
	bool done;	    /* all of it is in our queue, and in the copy of that */
	bool releasing;	    /* it is ours, and the queue was told so */
	int64_t failing_ms; /* up-clock: nothing more came since; 0: it does */
	enum node_giving {
		GIVING_NOTHING,
		GIVING_WANTED, /* what was taken is to go, */
		GIVING_ASKED,  /* and the queue was told so: SPOOL_DISOWN */
		GIVING_GONE    /* nothing of it is in our queue: the rows are to say so */
	} giving;
	const char *why; /* it is given back */
	uint64_t messages, doubtful, damaged;
};

struct node {
	struct conf *conf; /* of the start */
	int64_t minfree;   /* queue_minfree of now, bytes */
	struct spool *spool;
	struct replica *replica;
	struct loop *loop, *main;
	struct loop *watcher;
	char *name;
	struct nats_setup nats;
	struct roster roster;
	struct epoch_own own;
	struct replica_epoch row; /* ours, as we wrote it last */
	uint64_t revision;	  /* of that */
	enum node_state state;
	uint64_t noted; /* the epoch that was noted to be taken; 0: none */
	uint64_t
		behind; /* the stream has what a later state of this folder wrote, of this epoch; 0: no */
	bool doubts;  /* EPOCH_DOUBT: the operator is asked, */
	bool insists; /* and has said that this folder is the queue */
	char *reason; /* that was logged last, as long as it holds */
	char *denied; /* what NATS does not permit, as it was said last; NULL: it answers */
	bool anew;    /* that was said of this connection */
	unsigned looks;
	uint64_t said; /* the latest revision of a row by which we adopt that was logged */
	bool released; /* what a former start had taken was released, or is being taken again */
	atomic_bool draining;  /* any thread */
	atomic_bool interrupt; /* the relay ends */
	struct timer tick;
	struct node_taking taking;
};

void node_say(const char *of, const char *state, uint64_t epoch, const char *reason);
/* The event `node`. */

bool node_row_is_right(struct node *, const char *of, const struct roster_row *);
/* As far as the stream of that queue knows; row NULL: there is none. False: it is written anew from what the stream says, or
 * nobody knows: ask again at the next look. */

bool node_has_others(const struct node *); /* some other node lives, as far as is known */

bool node_has_room(struct node *, const struct roster_row *, uint64_t *needed, int64_t *there);
/* For the queue of that one; bytes. Also true when it is not known: then it is found out. */

void node_look_at_others(struct node *);
void node_taken(struct node *); /* the thread has ended */
void node_disowned(struct node *, bool done);
bool node_claim(struct node *, const struct roster_row *);
/* Take over the queue of that one, if nobody was before us. */

#endif
