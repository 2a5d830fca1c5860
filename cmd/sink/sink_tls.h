/* sink_tls.h - the certificate of `sluice sink`: one that is made on the fly, signed by itself, or from a file.
 *
 *	TLSA	3 1 1: this public key, whoever has signed it. sha256=: what tls_policy may name.
 *
 * OWNERSHIP  The context is the caller's: SSL_CTX_free().
 * THREAD     Main.
 * ERRORS     NULL, and why.
 * SEE        RFC 7671 5.1; base/tls_verify.h.
 */
#ifndef CMD_SINK_SINK_TLS_H
#define CMD_SINK_SINK_TLS_H

#include "base/buf.h"
#include "cmd/sink/sink_options.h"

#include <openssl/types.h>

SSL_CTX *sink_tls_new(const struct sink_options *, struct buf *error);
void sink_tls_print_key(SSL_CTX *, struct buf *to); /* SHA-256 of the public key, in hexadecimal */

#endif
