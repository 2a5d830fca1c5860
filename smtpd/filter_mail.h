/* filter_mail.h - the content of a message on its way through filters: a stage of stages/stages.h.
 *
 *	session: events of the dialogue --> chain       content --> stage --> chain
 *	maildrop:                                       envelope and content --> stage --> chain
 *
 * A message that did not come by SMTP is told to the filters as one of this machine's, from localhost.
 *
 * OWNERSHIP  Embedded, in a session's struct filtering or in a take of the maildrop's. It may go while
 *            the pool has the passage.
 * THREAD     The chain's.
 * ERRORS     As the end of the passage. A server of aliases that could not say who a recipient is that a filter adds:
 *            451 4.3.0, whatever the default_action. A header that is too long to be looked at: 552 5.3.4.
 */
#ifndef SMTPD_FILTER_MAIL_H
#define SMTPD_FILTER_MAIL_H

#include "smtpd/alias_learn.h"
#include "smtpd/filter_changes.h"
#include "smtpd/milter/milter_chain.h"
#include "stages/stages.h"

/* Whose mail it is. */
struct filter_owner {
	const char *(*macro)(void *owner, const char *name); /* NULL: of a relay's own mail */
	void (*done)(void *owner); /* an event of the dialogue; NULL: there is none */
	void *owner;
	const char *hostname; /* of a relay whose own mail it is; else NULL */
	const char *daemon;   /* of its own mail: which part of it has brought it */
	uint64_t id;	      /* of the message, for the log; 0: the draft's */
	struct socketmaps *maps;
	bool patient; /* nobody waits for a reply */
};

struct filter_mail {
	struct milter_chain *chain;
	struct filter_changes changes;
	struct alias_learning aliases; /* of recipients that they add */
	const char *adds;	       /* the filter that does */
	bool unheard;		       /* and nobody could say who they are */
	struct filter_owner owner;
	uint64_t id, session;	 /* for the log; 0: none */
	struct passage *passage; /* at work on content; NULL: on something else */
	uint32_t step;		 /* of its own mail: what it has been told */
	char *quarantine;	 /* why the filter at work wants it held */
	bool changed;		 /* some filter has changed it */
	const char *by; /* who refuses, discards or holds it; in the configuration; or NULL */
	char *held_why; /* what it says about that; or NULL */
};

void filter_mail_init(struct filter_mail *, struct milters *, struct conf *,
		      const struct filter_owner *);
/* Then milter_chain_add(). */

void filter_mail_fini(struct filter_mail *);

void filter_mail_stage(struct filter_mail *, struct passage *); /* let it pass there */
void filter_mail_reset(struct filter_mail *);			/* the message is over */

#endif
