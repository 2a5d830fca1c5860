/* sample.h - some of the messages that fit a question, and how many each of them stands for.
 *
 *	index --> does it fit? --> its group --> few of the group so far: its envelope is read
 *	                                     \-> many: only now and then; the one before stands for it
 *
 * Why a message waits is on disk, in its envelope. So that a question about a million of them reads
 * some hundred, a group is read wholly where it is oldest and ever more thinly behind that: the first
 * ones one by one, then each that is a dense'th further on than the one before. The index, in memory,
 * tells which fit and of which group they are.
 *
 * OWNERSHIP  Embedded in struct spool_command; sample_free() frees the rows.
 * THREAD     sample_step(): spool. The rest: whoever holds it.
 * ERRORS     An envelope that can't be read is passed over.
 */
#ifndef SPOOL_SAMPLE_H
#define SPOOL_SAMPLE_H

#include "spool/spool.h"

struct sample_row {
	enum spool_queue queue;
	struct envelope *envelope;
	uint16_t site;	    /* of a deferred one: whose mail it is; 0: no one's in particular */
	int64_t stands_for; /* messages of its group, itself and those behind it */
};

struct sample {
	/* what is asked for: */
	uint16_t
		site; /* deferred mail of this site, as SPOOL_RELEASE named it; 0: it is not asked */
	char **domain; /* or mail for any of these, as name_key.h has them; then other spellings that the queue has */
	int ndomain;	 /* neither a site nor domains: all mail */
	bool senders;	 /* mail from these domains too */
	unsigned queues; /* bits 1 << enum spool_queue: mail in these only; 0: in any */
	bool apart;	 /* a group is what goes to one destination; else what is in one queue */
	int64_t first;	 /* read of each group before it is thinned */
	int64_t dense;	 /* 0: it is not */
	int most;	 /* envelopes read, in all: there it ends */
	/* the answer: */
	int64_t fit; /* messages that do */
	bool cut;    /* it has ended at `most`, or at 200,000 recipients: there may be more */
	struct sample_row *row;
	int n;
	/* while it is being made: */
	bool spelt;    /* these were looked for */
	int64_t rcpts; /* of the rows */
	struct sample_group *groups;
};

struct sample *sample_new(void); /* asks for all mail, dense 1, one envelope */
void sample_free(struct sample **);
void sample_want_domain(struct sample *, const char *domain); /* in any spelling */

struct spool_command;
void sample_step(struct spool *, struct spool_command *);
/* Behind c->after go through so many messages as take a millisecond or two; c->more where it has not
 * come to the end. */

#endif
