/* sasl_client.h - the client side of a SASL exchange: challenges in, responses out, without I/O.
 *
 *	sasl_client_choose(what the host offers, what we have) -> mechanism
 *	sasl_client_new() -> sasl_client_step(NULL) -> [ response <- sasl_client_step(challenge) ]... -> sasl_client_over()
 *
 * GNU SASL does PLAIN, LOGIN and SCRAM; tokens need no more than a line. The strongest that both sides
 * have is taken: one that shows the host no password before one that does, one that is bound to the TLS
 * connection before one that is not. A host that asks for more rounds of hashing than ITERATIONS_MAX is
 * refused: it would have the thread compute for as long as it likes.
 *
 * OWNERSHIP  struct sasl_client is the caller's, and keeps copies of nothing but what GNU SASL does, which
 *            sasl_client_free() overwrites. What sasl_setup points at must outlive it.
 * THREAD     Any; one thread a context and its sessions.
 * ERRORS     sasl_client_step() returns false; sasl_client_error() is a clause.
 * SEE        RFC 4422; RFC 4616 (PLAIN); RFC 5802, 7677 (SCRAM); RFC 5929, 9266 (binding);
 *            RFC 7628 (OAUTHBEARER); Google's "XOAUTH2 Protocol".
 */
#ifndef SMTPC_SASL_CLIENT_H
#define SMTPC_SASL_CLIENT_H

#include "base/buf.h"

#include <stdbool.h>

/* X(name in C, name, what it needs: password or token, binding), the strongest first */
#define SASL_MECHANISMS(X)                                                                         \
	X(SCRAM_SHA_256_PLUS, "SCRAM-SHA-256-PLUS", false, true)                                   \
	X(SCRAM_SHA_1_PLUS, "SCRAM-SHA-1-PLUS", false, true)                                       \
	X(SCRAM_SHA_256, "SCRAM-SHA-256", false, false)                                            \
	X(SCRAM_SHA_1, "SCRAM-SHA-1", false, false)                                                \
	X(PLAIN, "PLAIN", false, false)                                                            \
	X(LOGIN, "LOGIN", false, false)                                                            \
	X(OAUTHBEARER, "OAUTHBEARER", true, false)                                                 \
	X(XOAUTH2, "XOAUTH2", true, false)

enum sasl_mechanism {
#define X(mechanism, ...) SASL_##mechanism,
	SASL_MECHANISMS(X)
#undef X
		SASL_NONE
};

enum { SASL_ITERATIONS_MAX = 100000, SASL_BINDING_MAX = 128 };

/* Bindings that tell a TLS connection from another, base64. */
struct sasl_binding {
	bool exporter;		     /* tls-exporter, of TLS 1.3; else tls-unique */
	char text[SASL_BINDING_MAX]; /* "": none */
};

struct sasl_setup {
	struct Gsasl *context;
	const char *login, *secret; /* a password, or a token */
	bool token;
	struct sasl_binding binding;
};

struct sasl_client;

struct Gsasl *sasl_client_context(void); /* for sasl_client_context_free() */
void sasl_client_context_free(struct Gsasl *);

unsigned sasl_client_offered(const char *words);
/* The mask of mechanisms that a line of words names, which may end at CR or NUL. */

enum sasl_mechanism sasl_client_choose(unsigned offered, bool token, bool binding);
const char *sasl_client_name(enum sasl_mechanism);

struct sasl_client *sasl_client_new(const struct sasl_setup *, enum sasl_mechanism);
void sasl_client_free(struct sasl_client **);

bool sasl_client_step(struct sasl_client *, const char *challenge, struct buf *to);
/* The answer to a challenge, base64 both; NULL: the initial response, which is "" where the host has
 * the first word. */

bool sasl_client_over(const struct sasl_client *);
/* Nothing is left to say; a host that had to prove that it knows the password has done so. */

const char *sasl_client_error(const struct sasl_client *);

#endif
