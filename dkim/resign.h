/* resign.h - a message of the queue that filters may change: what we had signed is signed again.
 *
 *	resign_stage --> [ filters ] --> dkim_stage, its context this
 *	which signatures are ours          if it was changed: those go, new ones come
 *
 * Who has sent it is not known any more, so nothing is vouched for that was not before. A signature is ours if
 * signing once more, with the times that it says, makes the same bytes: RSA and Ed25519 sign so. One that
 * somebody else has put there in our name is none, and neither is one by a key, or a list of fields, that is
 * not configured any more.
 *
 * OWNERSHIP  Embedded in whoever's message it is; resign_fini() frees what it found. It may go while the
 *            pool has the passage.
 * THREAD     The passage's, and a thread of the pool.
 * ERRORS     Those of the passage.
 * SEE        RFC 6376 3.5, t=; RFC 8017 8.2; RFC 8032.
 */
#ifndef DKIM_RESIGN_H
#define DKIM_RESIGN_H

#include "dkim/author.h"
#include "stages/stages.h"

struct resign {
	const bool *changed; /* the owner's: has it been changed since? */
	int n;
	const struct conf_dkim *by[CONF_DKIM_MAX]; /* in the passage's conf, or of a row */
	struct signers rows;			   /* those of rows, which hold their keys */
	char *field[CONF_DKIM_MAX];		   /* what each had made */
};

extern const struct passage_stage resign_stage; /* its context: a struct resign */

void resign_fini(struct resign *);

int resign_choose(const struct resign *, const struct conf_dkim *by[CONF_DKIM_MAX]);
/* Which sections are to sign again; how many. */

void resign_remove(const struct resign *, struct draft *); /* what they had made */

#endif
