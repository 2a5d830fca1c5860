/* filtering.h - a session, and the filters that its mail passes.
 *
 *	session_open()	filtering_open(), filtering_connect() --> greeting
 *	verbs		filtering_helo(), _mail(), _rcpt(), _data(), _unknown()
 *	content		filtering_stage(): the first of stages/stages.h (filter_mail.h)
 *	reception_reset()	filtering_reset()
 *
 * Each event is told to the filters before the client has its answer; the session waits for them (wait.h).
 * With no filters there is no struct filtering, and none of this happens.
 *
 * OWNERSHIP  The session's.
 * THREAD     The session's worker.
 * STATES     Those of milter_chain.h.
 * ERRORS     As replies. Event filter: what a filter wanted, or was done in its stead.
 * SEE        POSTFIX MILTER_README.
 */
#ifndef SMTPD_FILTERING_H
#define SMTPD_FILTERING_H

#include "smtpd/alias.h"
#include "smtpd/session.h"
#include "stages/stages.h"

struct filtering;

void filtering_open(struct session *); /* of a listener with milters; of others nothing */
void filtering_free(struct filtering **);

/* The session goes on: the filters have nothing against it, or they have, and the client
 * has been told; then the session may be CLOSED. */
typedef void filtering_resume(struct session *, bool passed);

void filtering_connect(struct session *, filtering_resume *); /* refused, the session is to end */
void filtering_helo(struct session *, const char *name, filtering_resume *);
void filtering_mail(struct session *, filtering_resume *); /* tx is there */

void filtering_rcpt(struct session *, const char *address, uint8_t notify, const char *orcpt,
		    filtering_resume *);
/* orcpt may be NULL. */

void filtering_data(struct session *, filtering_resume *);
/* Not of a message that nobody gets. */

void filtering_unknown(struct session *, const char *line, filtering_resume *);

void filtering_sender(struct session *, const char *address);
/* Of the MAIL to come, as the client gave it. */

void filtering_added(struct session *, const char *address, struct alias_added *);
/* For this one there are those recipients in the envelope. Takes what hangs on that. */

void filtering_reset(struct session *); /* there is no transaction any more */

void filtering_stage(struct session *, struct passage *); /* add it */

#endif
