/* validator.h - validates answers by DNSSEC: libunbound on the loop.
 *
 *	validator_ask(name, type) --> libunbound: the chain of keys from the root, signatures, denials
 *	                                 --> validated(bytes or why, verdict)
 *
 * libunbound sends its questions to the name servers of the configuration, which must hand on
 * signatures (probe.h). It follows CNAME records to their end; the verdict is of the whole chain, the
 * weakest link's. It keeps keys and records, at most 4 MB of each in all, and bounds the work that one
 * question can make: signatures tried, keys of one tag, iterations of NSEC3 (above 150 the zone counts
 * as unsigned, RFC 9276 3.2).
 *
 * OWNERSHIP  The sender owns its struct validator_query, which must live until validated() is called.
 *            validator_free() calls it for all that are under way, with CHANNEL_CLOSED.
 * THREAD     The loop's, one of those of validators.h.
 * ERRORS     As events. validated() may be called before validator_ask() returns, and must not ask.
 * SEE        RFC 4033 5 (the verdicts); RFC 4035; RFC 5155; libunbound(3).
 */
#ifndef DNS_VALIDATOR_H
#define DNS_VALIDATOR_H

#include "base/conf.h"
#include "base/loop.h"
#include "base/trust_anchor.h"
#include "dns/answer.h"
#include "dns/channel.h"

struct validator_reply {
	enum channel_event event;
	enum resolve_security security; /* of CHANNEL_REPLY */
	const void *bytes;		/* of CHANNEL_REPLY, lent; when bogus there need be none */
	size_t len;
	const char *why; /* bogus: what is wrong, as libunbound says it; lent; or NULL */
};

struct validator_query {
	void (*validated)(struct validator_query *, const struct validator_reply *);
	struct validator *validator; /* the rest is the validator's own */
	unsigned magic;
	struct list link;
	struct timer limit;
	int id;
};

struct validator;

struct validator *validator_new(struct loop *, int of, const struct conf_dns *,
				const struct trust_anchor *, const union address *server,
				int nserver);
/* One of so many that share what one alone would have of memory, sockets and questions. Settings, anchors and servers
 * are only lent. NULL when it can't be set up, which is logged. */

void validator_free(struct validator **);
/* Not from within validated(). */

void validator_ask(struct validator *, const char *name, enum answer_type,
		   struct validator_query *);

#endif
