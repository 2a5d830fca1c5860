/* stub.h - what memory keeps of a message in the queue: where it lies, and when it is due.
 *
 * A million deferred messages must fit: the envelope itself stays on disk until it is worked on. A
 * stub takes 72 bytes, its row in the catalog 16, its place in the heap 8. Its time takes 47 bits, so
 * that whose mail it is costs nothing: what there is for each site is counted in parked.h.
 *
 * OWNERSHIP  The catalog's, or, once a message is finished, that of the op that writes so. They come
 *            out of a pool, which frees them all.
 * THREAD     spool; before they are handed over, that of recovery.
 * STATES     STUB_INCOMING, STUB_DEFERRED: in the due heap of that state. STUB_HELD: until the
 *            operator releases it. STUB_ACTIVE: with qmgr, or on the way there or back. STUB_ADOPTED:
 *            taken from another node, and not this one's yet (adoption.h). STUB_GONE: not in the catalog.
 *            Parked and urgent are said of STUB_DEFERRED only, held of STUB_ADOPTED, scheduled of both. Site too, but for
 *            STUB_INCOMING and STUB_ACTIVE it is the row of a flow (inflow.h).
 */
#ifndef SPOOL_STUB_H
#define SPOOL_STUB_H

#include "spool/segment.h"
#include "spool/spool.h"

#include <assert.h>

enum stub_state { STUB_INCOMING, STUB_DEFERRED, STUB_HELD, STUB_ACTIVE, STUB_ADOPTED, STUB_GONE };

/* The operator's, for a message being worked on. */
enum stub_wish {
	WISH_NONE,
	WISH_DELETE,
	WISH_HOLD,
	WISH_REQUEUE,
	WISH_BOUNCE,
	WISH_HOLD_BOUNCED, /* held, and returned once it is let go of */
	WISH_RENEW	   /* to be held no more, and its lifetime begins anew */
};

/* Verdicts and places of a message while it is worked on. */
struct work {
	struct spool_delivered *first, *last; /* verdicts since the envelope was written */
	struct place *place; /* they and the start record lie there: one a segment */
	size_t nplace;
	struct content_file *file; /* of large content: there it is said that it is damaged */
	uint32_t generation;	   /* of the envelope that all this is about; recovery only */
	struct work *lower;	   /* the same of a lower generation; recovery only */
};

enum { STUB_GENERATION_MAX = (1 << 19) - 1 }; /* one a round of attempts, and one a move */

struct stub {
	uint64_t id;
	int64_t due_ms : 47; /* wall clock; stub_set_due() */
	uint64_t site : 13;  /* whose mail it is; 0: no one's in particular */
	bool parked : 1;     /* it waits for that site, or for due_ms */
	bool urgent : 1;     /* the operator has made it due */
	bool held : 1;	     /* its envelope says so */
	bool scheduled : 1;  /* its sender wants it sent at due_ms, not before */
	struct place envelope;
	struct place content; /* no segment: a file in large/ */
	union {
		struct work *work; /* while STUB_ACTIVE */
		struct op *keep;   /* while unsettled */
	};
	uint32_t slot;		  /* in a due heap, from 1; 0 when in none */
	uint32_t sender, rcpt;	  /* domains.h */
	uint32_t generation : 19; /* of its envelope */
	bool first : 1;		  /* recovery: that is the one that it came with */
	uint32_t state : 3;	  /* enum stub_state */
	bool unsettled : 1;	  /* its envelope is written and not synced yet */
	bool releasing : 1; /* active, but qmgr has let go of it; or held, and being replaced */
	uint32_t wish : 3;  /* enum stub_wish: what is to come of it once it is released */
	bool moving : 1;    /* chosen by the step of compaction that is under way */
	bool damaged : 1;   /* its content can't be had */
	bool large : 1;	    /* its content has a file of its own */
	bool seen : 1;	    /* recovery: its content's record is right */
};
static_assert(sizeof(struct stub) == 72, "a million of them is the budget");
static_assert(SPOOL_SITE_MAX < 1 << 13, "a site has to fit in");

#define STUB_DUE_MS_MAX (((int64_t)1 << 46) - 1) /* in the year 4199 */

static inline void stub_set_due(struct stub *s, int64_t due_ms)
{
	int64_t fits = due_ms < 0 ? 0 : due_ms < STUB_DUE_MS_MAX ? due_ms : STUB_DUE_MS_MAX;
	s->due_ms = fits & STUB_DUE_MS_MAX; /* the mask tells the compiler so */
}

static inline void stub_wait_for(struct stub *s, const struct envelope *e)
{
	stub_set_due(s, e->due_ms);
	s->scheduled = envelope_is_scheduled(e);
}

struct stub_pool {
	struct stub_block *block;
	struct stub *free; /* linked by their ids' place */
};

struct stub *stub_new(struct stub_pool *); /* all zero */
void stub_free(struct stub_pool *, struct stub *);
void stub_pool_fini(struct stub_pool *);
void stub_pool_join(struct stub_pool *, struct stub_pool *from); /* all of the other's */

void work_add(struct work *, struct spool_delivered *);
void work_hold(struct work *, const struct place *);
struct journal;
void work_free(struct work *, struct journal *); /* NULL work is allowed */

#endif
