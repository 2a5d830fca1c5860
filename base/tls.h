/* tls.h - the two kinds of SSL_CTX.
 *
 * OWNERSHIP  The caller frees with SSL_CTX_free().
 * THREAD     Made by main; used by any.
 * ERRORS     NULL, and why in error.
 * SEE        RFC 8314 (submission); RFC 7672 1.3.1 (opportunistic); RFC 8996 (TLS 1.2 and up).
 */
#ifndef BASE_TLS_H
#define BASE_TLS_H

#include "base/conf.h"

#include <openssl/types.h>
#include <stdbool.h>

SSL_CTX *tls_server_context(const char *certificate, const char *key, bool cbc,
			    const struct conf_list *groups, struct buf *error);
/* Of one listener: a session or ticket of another listener is not resumed here. cbc: the suites of
 * TLS 1.2 that only know CBC are good enough, for clients that know no others. groups: tls_groups.h. */

SSL_CTX *tls_identity(const char *certificate, const char *key, struct buf *error);
/* Of a client: only what it shows when it is asked, for tls_show_identity(). */

bool tls_show_identity(SSL *, SSL_CTX *identity);
/* Before the handshake. False: OpenSSL has no memory. */

bool tls_ask_client(SSL_CTX *, const char *ca, struct buf *error);
/* Have the client of a server context show its certificate, if it likes. The handshake goes on whatever
 * that is worth, which SSL_get_verify_result() tells. ca: a PEM file of authorities, "" for none.
 * False: it can't be read. */

SSL_CTX *tls_client_context(void);
/* Opportunistic: whoever it is, with the default groups (tls_groups_offer()); ready for tls_dane_prepare(). Sessions are the caller's to keep: SSL_get1_session(). */

void tls_demand(SSL *, enum transport_tls, int minimum);
/* Before the handshake with a next hop: what its policy wants of version and suites. minimum: enum tls_minimum. */

const char *tls_server_name(const char *host);
/* The host, where it is a name that may be told for SNI (RFC 6066 3: never an address); else NULL. */

#endif
