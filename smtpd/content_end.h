/* content_end.h - all content of a message has come: what the session does until it is stored.
 *
 *	content_end() --> [ stages ] --> [ in_flow_delay ] --> [ spool ] --> reply
 *
 * Each is a wait of its own (wait.h), and outlives the client: who has gone without having read the reply
 * has its message sent. The stages are those of stages/stages.h; where there are none, nobody waits for
 * them.
 *
 * THREAD     The session's worker.
 * STATES     DATA or CHUNK, and WAIT; then READY.
 * ERRORS     As a reply.
 */
#ifndef SMTPD_CONTENT_END_H
#define SMTPD_CONTENT_END_H

#include "smtpd/session.h"

void content_end(struct session *);

void content_refuse(struct session *, enum response);
/* Of what came so far; reception_verdict() says why. */

#endif
