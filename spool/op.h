/* op.h - one thing that is to be written of one message.
 *
 *	op_add()  the spool's list of what is to be done; commit_run() writes all that is there
 *
 * OWNERSHIP  An op owns what hangs on it.
 * THREAD     spool.
 * ERRORS     None here.
 * SEE        commit.h for the life of an op.
 */
#ifndef SPOOL_OP_H
#define SPOOL_OP_H

#include "spool/spool_core.h"

enum op_kind { OP_STORE, OP_START, OP_DELIVERED, OP_KEEP, OP_FINISH, OP_COPY, OP_MOVE };

struct op {
	struct list link;
	enum op_kind kind;
	bool effective;	 /* has been in effect before; only its places change */
	bool first;	 /* OP_STORE: start it at once */
	bool worked;	 /* OP_FINISH: it was being worked on */
	bool given_back; /* OP_FINISH: it may be taken once more, and lives then */
	bool delivers;	 /* OP_FINISH: it stands for an OP_DELIVERED, too */
	bool urgent;	 /* OP_START: it was; OP_KEEP: it is to be */
	bool parked;	 /* OP_KEEP: it waits for its site */
	uint16_t site;	 /* OP_KEEP: whose mail it is, or 0 */
	uint16_t row;	 /* OP_STORE, first: of its flow's places */
	struct stub *stub;
	struct spool_store *store;
	uint64_t
		partner; /* OP_STORE: id of the one in the same batch that it belongs to; OP_FINISH: that is
			   * done, too; or 0 */
	struct stub *replaces; /* OP_STORE: goes once it is in effect; or NULL */
	struct spool_delivered *delivered;
	struct envelope *envelope; /* OP_START, OP_KEEP, OP_MOVE */
	struct content *content;   /* OP_START; OP_COPY: to be written once more */
	struct place *copied;	   /* OP_COPY: where to say where; held */
	bool moves_content;	   /* OP_MOVE: content_at holds what OP_COPY has said */
	struct work
		*work; /* OP_START: to become the stub's; OP_KEEP, OP_FINISH, OP_MOVE: what ends */
	struct place was;		       /* OP_KEEP, OP_MOVE: the envelope that it replaces */
	struct place content_was;	       /* OP_MOVE */
	uint32_t generation;		       /* of the envelope that it writes, or is about */
	struct place at, content_at, start_at; /* where it was written */
	uint64_t barrier;		       /* OP_STORE: replicate.h: what it waits for, */
	int64_t awaits_since_us;	       /* and since when; steady clock */
};

struct op *op_add(struct spool *, enum op_kind,
		  struct stub *); /* the last of those to be written */
struct op *op_of(struct list *link);

void op_finish(struct spool *, struct stub *);
/* Nothing is left to do for this message: take it out of the catalog and write so. */
void op_finish_delivered(struct spool *, struct stub *, bool delivers);
/* The same. delivers: all of it was delivered just now, and one record says both; so it does where the last that is to be
 * written is what was delivered of it. */
void op_give_back(struct spool *, struct stub *);
/* The same of one that was adopted, and which this node may adopt again. */

void op_free(struct op *); /* what hangs on it was given away, or goes with it */

#endif
