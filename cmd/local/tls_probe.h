/* tls_probe.h - a handshake with one host, like that of a delivery, and its result.
 *
 *	connect, greeting, EHLO, STARTTLS, handshake --> version, cipher, chain --> verified? --> QUIT
 *
 * OWNERSHIP  tls_probe_fini() frees what is in it.
 * THREAD     Main; it blocks, PROBE_SECONDS at most for each thing it waits for.
 * ERRORS     As failure, a clause.
 * SEE        base/tls_verify.h.
 */
#ifndef CMD_LOCAL_TLS_PROBE_H
#define CMD_LOCAL_TLS_PROBE_H

#include "base/conf.h"
#include "base/resolve.h"
#include "base/tls_verify.h"

enum { PROBE_SECONDS = 10, PROBE_CHAIN_MAX = 20 };

struct tls_probe_certificate {
	char *subject, *issuer; /* RFC 2253 */
	char *names;		/* of subjectAltName, with commas */
	char *key;		/* "RSA 2048" */
	char fingerprint[65];
	int64_t until_ms; /* wall clock */
	int days;	  /* until then; below 0 it has expired */
};

struct tls_probe {
	char *policy; /* of this host */
	bool offered, shaken;
	char *failure; /* or NULL */
	const char *version, *cipher;
	char *group; /* or NULL */
	bool small;  /* only a small ClientHello was answered: smtpc/connection.h */
	enum tls_verified verified;
	struct buf record; /* of TLSA, that fits */
	struct buf reason; /* why not matched */
	int nchain;
	struct tls_probe_certificate chain[PROBE_CHAIN_MAX];
};

struct tls_probe_host {
	const char *name;
	const union address *address; /* with the port */
	const char *of_hop;	      /* the policy, in terms of the hop */
	const char *hop;
	const struct tls_dane *dane; /* what its TLSA records demand; or NULL */
	const struct conf_transport *by;
};

void tls_probe_run(struct tls_probe *, const struct conf *, const struct tls_authorities *,
		   const struct tls_probe_host *);
/* Where the policy does not ask who it is, verified is what plain "verify" would come to. */

void tls_probe_fini(struct tls_probe *);

bool tls_probe_asks(const struct tls_probe *);
/* Does the policy ask who it is? */

bool tls_probe_passes(const struct tls_probe *);
/* Would a message be given to it? */

void tls_probe_says(const struct tls_probe *, struct buf *to);
/* The fate of a message, as a clause. */

#endif
