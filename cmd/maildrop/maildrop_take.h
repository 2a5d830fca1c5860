/* maildrop_take.h - one file that was taken from the maildrop, on its way into the queue.
 *
 *	taken/ID --> head --> envelope      --\
 *	         --> content --> intake     ---+--> [ stages ] --> SPOOL_STORE
 *	                                    --/
 *
 * What servers of aliases must be asked first is learnt, and the file read once more then.
 *
 * OWNERSHIP  A take is the maildrop's; while the spool has its message, the spool's note refers
 *            to it, while it passes stages, that passage.
 * THREAD     maildrop.
 * ERRORS     What is no message, or not one that may be sent: TAKE_BAD, and why. What may pass, and would befall
 *            any other now: TAKE_LATER. What filters say, and what fails for this one alone: take.end.
 * SEE        maildrop.h, maildrop_form.h.
 */
#ifndef CMD_MAILDROP_MAILDROP_TAKE_H
#define CMD_MAILDROP_MAILDROP_TAKE_H

#include "base/list.h"
#include "base/magic.h"
#include "cmd/maildrop/maildrop_form.h"
#include "smtpd/alias_learn.h"
#include "smtpd/milter/milter_link.h"
#include "spool/spool.h"
#include "stages/stages.h"

#include <sys/types.h>

enum { TAKE_MAGIC = 0x7a4e0d20 };

/* The end of a take that was asked about, and not stored. */
enum take_end {
	TAKE_AGAIN,    /* when the queue takes mail: others wait behind it */
	TAKE_PUT_OFF,  /* by a filter, a server of aliases, or a failure of its own */
	TAKE_REFUSED,  /* for good */
	TAKE_DISCARDED /* it is dropped */
};

struct take {
	unsigned magic;
	struct list link;
	uint64_t id;		     /* the name in taken/, and the message's */
	struct passage *passage;     /* under way; or NULL */
	struct filter_mail *filters; /* local ones that it passes there; or NULL */
	struct alias_learning aliases;
	struct loop *reply_to; /* while these are learnt */
	enum take_end end;     /* of what was not stored, */
	char *reply;	       /* and what a filter has said of it, or why it was put off */
	const char *why;
	/* for the log, once it is read */
	uid_t owner;
	char *message_id;
};

enum take_result { TAKE_ASKED, TAKE_LATER, TAKE_BAD };

struct take *take_new(uint64_t id);
void take_free(struct take **);

/* The parts of the maildrop that a take is made with. */
struct take_means {
	struct conf *conf;
	struct spool *spool;
	struct thread_pool *pool;
	struct loop *loop; /* where answers come */
	struct milters *milters;
	struct socketmaps *maps;
	int folder; /* taken/ */
};

enum take_result take_store(struct take *, const struct take_means *);
/* TAKE_ASKED: SPOOL_STORED comes to the loop, its owner the take. */

const char *take_owner(const struct take *, char name[64]);
/* The name of the user whose file it is, or the number. */

#endif
