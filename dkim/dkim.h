/* dkim.h - signing mail: the last stage of its way to the queue.
 *
 *	stages.h --> [ which sections sign? ] -- pool: hashes, signatures --> fields in front of it
 *
 *	author.h	those of the author's domain, and of our own
 *	keyring.h	keys of rows of dkim_keys; key_record.h: what a key looks like in the DNS
 *	body_hash.h	hashes of a body, in forms of canonical_body.h
 *	resign.h	of a message that passes filters again: those that had signed it
 *
 * OWNERSHIP  Nothing of its own; what it works with lies in the passage.
 * THREAD     The passage's, and a thread of the pool; small mail is signed by Ed25519 in the first.
 * ERRORS     A signature that cannot be made fails the passage: the message is tried again, and never
 *            sent without it.
 * SEE        RFC 6376, 8301, 8463.
 */
#ifndef DKIM_DKIM_H
#define DKIM_DKIM_H

#include "stages/stages.h"

extern const struct passage_stage dkim_stage; /* its context: a struct resign; or NULL */

#endif
