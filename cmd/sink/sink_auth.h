/* sink_auth.h - AUTH at `sluice sink`: SCRAM-SHA-256, PLAIN and LOGIN, by GNU SASL.
 *
 *	sink_auth_new("PLAIN") -> sink_auth_step(what came) -> 334 challenge, ..., 235 or 535
 *
 * OWNERSHIP  An exchange: sink_auth_free(). Logins are lent for as long as it lasts.
 * THREAD     Main.
 * ERRORS     As the outcome.
 * SEE        RFC 4954 4.
 */
#ifndef CMD_SINK_SINK_AUTH_H
#define CMD_SINK_SINK_AUTH_H

#include "base/buf.h"
#include "cmd/sink/sink_options.h"

#define SINK_AUTH_MECHANISMS "SCRAM-SHA-256 PLAIN LOGIN"

struct sink_auth;

enum sink_auth_outcome { SINK_AUTH_MORE, SINK_AUTH_DONE, SINK_AUTH_FAILED };

struct sink_auth *sink_auth_new(const struct sink_options *, const char *mechanism);
/* NULL: there is no such mechanism. */

enum sink_auth_outcome sink_auth_step(struct sink_auth *, const char *said, struct buf *challenge);
/* Both in base64. MORE: the challenge is to be sent. */

const char *sink_auth_login(const struct sink_auth *); /* after DONE; until it is freed */
void sink_auth_free(struct sink_auth **);

#endif
