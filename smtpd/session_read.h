/* session_read.h - the input of a session, a piece at a time: a command, a line of a login, content, a chunk.
 *
 * THREAD     The session's worker.
 * STATES     Each is read in its own way: session_table.h.
 * ERRORS     As replies. Nothing may ride along behind a command that has to be the last.
 * SEE        RFC 5321 4.5.3.1; RFC 2920 3.1; RFC 3030 2.
 */
#ifndef SMTPD_SESSION_READ_H
#define SMTPD_SESSION_READ_H

#include <stdbool.h>

struct session;

bool session_read(struct session *); /* false: there is too little of it */

#endif
