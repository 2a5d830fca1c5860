/* session_run.h - one client, from its connection to its end.
 *
 *	stream --> session_read(): by state --> command -> verb_X.c     replies --> stream
 *	                                   --> content -> reception        one write a batch
 *
 * Replies gather in the stream and are sent when all input that has come is used up, so that a
 * pipelined group is answered by one write.
 *
 * OWNERSHIP  Makes and frees sessions. While its socket lingers, or the spool has its message, one
 *            stays though its client has gone: stream is NULL then.
 * THREAD     The session's worker.
 * STATES     session_table.h.
 * ERRORS     A connection that is lost, or silent for too long, ends its session.
 * SEE        session.h; RFC 5321 4.5.3.2; RFC 2920.
 */
#ifndef SMTPD_SESSION_RUN_H
#define SMTPD_SESSION_RUN_H

#include "base/address.h"

struct listener;
struct session;

void session_open(struct listener *, int fd, const union address *peer);
/* Takes the socket. */

void session_hurry(struct session *);	/* the worker closes: end a pause, and say so */
void session_abandon(struct session *); /* the thread has ended: close at once */

#endif
