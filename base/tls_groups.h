/* tls_groups.h - which groups TLS may use for its key exchange, of what the library has.
 *
 *	tls { groups }, or the default --> ours as a server; offered as a client, with or without hybrids
 *
 * The default is X25519MLKEM768, if the library has it, X25519, P-256, P-384. No ffdhe group is among them: one
 * handshake with ffdhe8192 costs as much as eighty with X25519, and a client could ask for nothing else.
 *
 * A hybrid group has ML-KEM in it (FIPS 203), and a public key of more than 1 kB: a ClientHello with one does not fit
 * one segment. As a client we send that key and one of the first classical group, so that a host without
 * hybrids needs no HelloRetryRequest. As a server we go by the order of the list, and not by which keys a
 * client has sent, where hybrid and classical meet: one round trip more is worth it.
 *
 * OWNERSHIP  None: the list stays the caller's. An empty one, one of an empty text, or NULL is the default.
 * THREAD     Any.
 * ERRORS     False, and the groups of the SSL or SSL_CTX are as before.
 * SEE        RFC 8446 4.2.7, 4.2.8; draft-ietf-tls-ecdhe-mlkem; smtpc/connection.h (hosts that take no large hello).
 */
#ifndef BASE_TLS_GROUPS_H
#define BASE_TLS_GROUPS_H

#include "base/conf.h"

#include <openssl/types.h>
#include <stdbool.h>

bool tls_groups_good(const struct conf_list *, int i, struct buf *why);
/* Does the library have the i-th of the list, and is it none of those before it? */

bool tls_groups_of_server(SSL_CTX *, const struct conf_list *);
bool tls_groups_of_client(SSL_CTX *);
/* Those that each SSL of it begins with: the default. */

bool tls_groups_offer(SSL *, const struct conf_list *, bool classical);
/* Before the handshake of a client. classical: no hybrids, where the list has any others. */

bool tls_groups_can_be_classical(const struct conf_list *);
/* Would that leave some out? */

const char *tls_groups_negotiated(SSL *);
/* The library's name for the group of a handshake that is done, the SSL_CTX's; NULL: it had none. */

#endif
