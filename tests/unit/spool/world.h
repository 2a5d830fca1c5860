/* world.h - a queue on a memdisk, and its neighbours: smtpd, qmgr and the operator in one.
 *
 *	world_open()    a start; the operator asks at once for all there is, so that the promises are told
 *	world_step()    one thing happens, by chance
 *	world_stop(), world_kill()
 *	world_audit()   a start, a look at everything, all of it handed to qmgr
 *
 * OWNERSHIP  world_init() takes disk; world_fini() frees it.
 * THREAD     The test's.
 * ERRORS     Whatever does not agree with the promises ends the program, with the seed in a line.
 */
#ifndef TESTS_UNIT_SPOOL_WORLD_H
#define TESTS_UNIT_SPOOL_WORLD_H

#include "spool/spool.h"
#include "tests/unit/spool/promises.h"
#include "tests/unit/spool/chance.h"
#include "tests/unit/spool/memdisk.h"

enum { WORLD_IMAGES = 8 };

/* A message that qmgr works on. */
struct held {
	struct promise *promise;
	struct envelope *envelope;
	struct content *content;
	bool cancelled;
};

/* What a power cut at some moment would leave, and what had been promised by then. */
struct image {
	struct memdisk *disk;
	struct promises promises;
};

struct world {
	struct memdisk *disk;
	struct promises promises;
	struct chance chance; /* what is done */
	struct chance power;  /* when and how it is cut */
	uint64_t uneven;      /* by this seed some acts are more frequent; 0: all are as they are */
	struct conf *conf;
	struct loop *client;
	struct spool *spool;
	struct held held[PROMISES];
	int nheld;
	bool closed;   /* what comes is not heard any more */
	bool stopping; /* it is being asked to end */
	bool listed;   /* the promises have been told of everything */
	bool fails;    /* faults are about: a store may be refused */
	int deleting_all;
	uint32_t unanswered; /* commands */
	uint64_t shown;	     /* a message that was on hold when it was shown, or 0, */
	uint32_t generation; /* and its envelope's */
	int nreplaced;
	bool promised; /* a client is told of what is stored from now on, */
	bool taken;    /* and it was taken from the maildrop */
	void (*on_call)(struct world *,
			enum memdisk_call); /* or NULL: before each call to the disk */
	int cut_every;			    /* one disk call in so many makes an image; 0: none */
	struct image *image[WORLD_IMAGES];
	int nimage;
};

extern bool world_loud;	    /* say what happens, on standard error */
extern uint64_t world_seed; /* of the history that runs: to be named when something is wrong */

void world_broken(const char *what, const struct promise *) __attribute__((noreturn));

void world_init(struct world *, struct memdisk *disk, uint64_t seed);
void world_fini(struct world *);
bool world_open(struct world *); /* false: the spool would not start; only while it fails */
void world_step(struct world *);
void world_do(struct world *, const char *act); /* one of those, by its name in world_acts.c */
void world_finish_last(struct world *w);	/* the last of those that qmgr works on */
void world_pass_long(struct world *);		/* until what is lazy is synced, too */
void world_stop(struct world *);
void world_kill(struct world *); /* the process dies; the machine lives */
bool world_store(struct world *, bool wait);
/* Post one; wait: until it is answered. False: refused, or the promises are full. */

void world_lay(uint64_t id); /* a file into taken/, on stable storage */

void world_heal(struct world *); /* nothing fails any more; mail is taken again */

void world_lose_checkpoint(struct world *);
/* Between two lives: it is removed, or damaged. What it passed over is read then. */

void world_audit(struct world *, bool everything);
/* The world has just been opened: everything that must be there is, and comes to qmgr. */

struct world *
world_begin(uint64_t seed); /* on a new disk, with nobody's threads between; not open yet */
void world_done(struct world **);

void world_again(struct world *,
		 bool after_cut); /* another start, and all that it does by itself */
void world_look(struct world *, struct memdisk *, const struct promises *, bool without_checkpoint);
/* A start on this disk agrees with the promises. The disk is freed, and w->disk NULL. */
void world_cut(struct world *, int cuts, bool without_checkpoint);
/* It dies now, and so do all starts on what so many cuts would leave. */
void world_store_some(struct world *, int n);

void image_free(struct image **);

#endif
