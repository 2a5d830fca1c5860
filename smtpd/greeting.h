/* greeting.h - the first reply to a client: behind a connection, TLS from the first byte on, or XCLIENT.
 *
 * Filters are asked first. Who speaks before it is out of step, and sent away.
 *
 * THREAD     The session's worker.
 * STATES     GREETED, and WAIT; CLOSED where it refuses.
 * ERRORS     As the reply.
 * SEE        RFC 5321 3.1.
 */
#ifndef SMTPD_GREETING_H
#define SMTPD_GREETING_H

struct session;

void greeting_begin(struct session *);
/* 220, or what filters say to this client; at once or after a wait. */

#endif
