/* maildrop.h - mail that was left for the relay while it could not be reached.
 *
 *	sluice sendmail --> SPOOL/maildrop/NAME          maildrop_leave.c, as any user
 *	                          |  claim: rename under an id of the relay's own; both folders synced
 *	                    SPOOL/taken/ID
 *	                          |  maildrop_take.c: SPOOL_STORE under that id
 *	                        queue                    then taken/ID is removed, that is synced,
 *	                                                 and only then the message is worked on
 *
 * Once each, whatever moment the relay is killed at: what is in taken/ once recovery has ended was
 * never worked on, for recovery removes what the queue has already. The names in maildrop/ are
 * their writers', who are not to be believed; an id that another message has, or that no clock has
 * reached, would do harm in the queue.
 *
 * Its thread has local mail pass filters, and so does it with messages on hold (refilter.h). It has
 * connections of its own to servers of aliases (smtpd/alias_learn.h): mail stays in taken/ until they have answered.
 *
 * Everybody may leave a file in maildrop/ (mode 3733: write and search, sticky, the group is
 * passed on); nobody but the relay's user can see or remove those of others. Files have the
 * folder's group, which is that user's, and mode 0640: so the relay can read them without being
 * root, and no other user can. What is no message goes to SPOOL/quarantine/ID.maildrop, is logged,
 * and holds up nothing. A name that begins with a dot is a file being written.
 *
 * OWNERSHIP  The maildrop owns its loop and its takes. A take whose message is with the spool
 *            waits for the answer: stop the spool between maildrop_stop() and maildrop_free(), and the pool before.
 * THREAD     All calls here: main. The thread "maildrop" reads files and blocks while the disk does.
 * STATES     waiting for recovery; looking: at each change of the folder, and now and then; taking
 *            one batch, and the next when most of it is stored; at rest.
 * ERRORS     maildrop_new() returns NULL and says why. Where there is no room in the queue, files
 *            stay and are tried again.
 * SEE        spool.h, struct spool_store; POSTFIX postdrop(1), pickup(8).
 */
#ifndef CMD_MAILDROP_MAILDROP_H
#define CMD_MAILDROP_MAILDROP_H

#include "base/conf.h"
#include "base/thread_pool.h"
#include "spool/spool.h"

enum maildrop_note {
	MAILDROP_RELOAD = NOTES_FROM(NOTES_OF_MAILDROP),
	MAILDROP_SHAPE,
	MAILDROP_REST,
	MAILDROP_REFILTER /* struct refilter */
};

struct maildrop;
struct refilter;

struct maildrop *maildrop_new(struct conf *, struct spool *, struct thread_pool *,
			      struct buf *error);
/* Make and open the folder; the spool has made the others. */

void maildrop_start(struct maildrop *);
void maildrop_rest(struct maildrop *);
/* Nothing more is taken, and who waits for filters is answered; questions are answered on. */

void maildrop_stop(struct maildrop *);
void maildrop_free(struct maildrop **);
struct maildrop_shape {
	struct note note; /* MAILDROP_SHAPE */
	struct loop *reply_to;
	void *owner;
	struct shape *shape; /* what is asked for; the answer is added to it */
	int error;	     /* of the answer: an errno, or 0 */
};

void maildrop_ask_shape(struct maildrop *, struct shape *, struct loop *reply_to, void *owner);
/* The messages that lie in the maildrop are counted; the note comes back, its shape given away both ways. */

void maildrop_refilter(struct maildrop *, struct refilter *);
/* Let a message on hold pass the filters; the note comes back, also where the relay stops. */

void maildrop_reload(struct maildrop *, struct conf *); /* takes a reference */

#endif
