/* sasl.h - one exchange of a mechanism with the users' file behind it: bytes in, bytes out.
 *
 *	sasl_step(what the client said) --> CHALLENGE, and what it is told; again
 *	                                    PASSWORD   sasl_password() is to be checked, beside the loop
 *	                                    DONE, WRONG, MALFORMED
 *
 * GNU SASL does SCRAM. What is added: that a client which could bind to the channel, and says that it
 * could not (RFC 5802 6), is an attack; and that nobody may act for another. PLAIN and LOGIN are a few
 * lines here, since the library would leave copies of passwords in memory that it gives back.
 *
 * OWNERSHIP  Heap; holds a reference on the tables, and wipes what it held.
 * THREAD     The session's worker. The library's handle is the worker's.
 * ERRORS     As outcomes. What the library itself can't do is WRONG.
 * SEE        RFC 4422, 4616, 5802, 7677, 9266; base/users.h.
 */
#ifndef SMTPD_SASL_H
#define SMTPD_SASL_H

#include "base/buf.h"
#include "base/mechanism.h"
#include "base/tables.h"

#include <openssl/types.h>

enum sasl_outcome { SASL_CHALLENGE, SASL_PASSWORD, SASL_DONE, SASL_WRONG, SASL_MALFORMED };

struct Gsasl; /* of <gsasl.h> */
struct sasl;

struct sasl *sasl_new(struct Gsasl **library, enum mechanism, struct tables *, SSL *,
		      bool plus_offered);
/* *library is made at first use; sasl_library_free() frees it. NULL: it knows no such mechanism. The
 * SSL is NULL in clear. */

enum sasl_outcome sasl_step(struct sasl *, const char *in, size_t len, struct buf *out);

const char *sasl_login(const struct sasl *); /* as far as it is known, or NULL */

bool sasl_password(struct sasl *, struct user_value *, char **password);
/* After PASSWORD. What the password is to be held against; both are the caller's. False: whatever comes
 * of that, it is wrong. */

void sasl_free(struct sasl **);
void sasl_library_free(struct Gsasl **);

bool sasl_can_bind(SSL *);
/* Is there anything about this connection that no other can have? RFC 7627: before TLS 1.3 only with the extended master
 * secret; without it somebody between the two can make both sides the same. */

#endif
