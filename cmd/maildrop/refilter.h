/* refilter.h - a message on hold passes the filters again, as `sluice queue release --refilter` wants it.
 *
 *	queue_refilter.c -- MAILDROP_REFILTER --> [ waiting ] --> [ passing: at most REFILTER_AT_ONCE ]
 *	      ^                                                       |   all filters, as mail of this machine
 *	      +------------- the same note, with its end <------------+--> SPOOL_STORE, where they have changed it
 *
 * Which filters it has passed at first is not kept, so all of the configuration see it, and whatever their
 * default_action says: what could not be asked has not let it pass. Recipients that are done are not shown,
 * and not in the new message. Its content is copied, since filters may change it; what is stored, if it was
 * changed, takes the place of the held one in one step of the spool (spool_store.replaces). Nothing else is
 * done to the held one here: who has asked releases or deletes it.
 *
 * OWNERSHIP  The note is given away, both ways; refilter_free(). struct refilters is the maildrop's.
 * THREAD     maildrop; refilters_stop() and refilters_fini(): main, when that thread has ended.
 * ERRORS     REFILTER_HELD, and why: the message is on hold as it was.
 * SEE        maildrop.h; filter_mail.h; dkim/resign.h.
 */
#ifndef CMD_MAILDROP_REFILTER_H
#define CMD_MAILDROP_REFILTER_H

#include "base/list.h"
#include "base/magic.h"
#include "cmd/maildrop/maildrop_take.h"
#include "dkim/resign.h"

enum { REFILTER_AT_ONCE = 20 };
enum { REFILTER_MAGIC = 0x4ef117e5 };

enum refilter_end {
	REFILTER_PASSED,    /* as it is */
	REFILTER_REPLACED,  /* by the message `as`, which is in the queue */
	REFILTER_DISCARDED, /* they want it dropped */
	REFILTER_HELD,	    /* it stays */
};

struct refilter {
	struct note note; /* MAILDROP_REFILTER */
	unsigned magic;
	struct loop *reply_to;
	void *owner;
	struct envelope *envelope; /* as SHOW has it, */
	struct content *content;
	uint32_t generation;
	bool fresh; /* its lifetime begins anew */

	enum refilter_end end; /* the answer */
	uint64_t as;
	char *says; /* who wants it discarded, or why it stays; or NULL */

	struct refilters *all; /* while it is with the maildrop */
	struct list link;
	struct passage *passage;
	struct filter_mail *filters;
	struct resign resign;
};

struct refilter *refilter_new(struct loop *reply_to, void *owner);
void refilter_free(struct refilter **);

struct refilters {
	struct list waiting, passing;
	int npassing;
	bool stopped;		   /* nothing is begun any more */
	void (*room)(void *owner); /* one that waits may begin: refilters_go_on() */
	void *owner;
};

void refilters_init(struct refilters *, void (*room)(void *owner), void *owner);
void refilters_fini(struct refilters *); /* all have been answered */

void refilters_take(struct refilters *, struct refilter *); /* it waits */
void refilters_go_on(struct refilters *, const struct take_means *);
void refilters_stored(struct spool_store *); /* an answer of the spool's to one that `replaces` */

void refilters_stop(struct refilters *);
/* All are answered but those whose new message is with the spool. */

#endif
