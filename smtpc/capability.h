/* capability.h - what a host announced in its reply to EHLO, as far as we use it.
 *
 * OWNERSHIP  A plain value.
 * THREAD     Any; no I/O.
 * ERRORS     None: what can't be understood was not announced. The reply bounds lines and length.
 * SEE        RFC 5321 4.1.1.1; RFC 1870 (SIZE); RFC 3207, 2852, 2920, 3030, 3461, 6152, 6531,
 *            6710, 9422.
 */
#ifndef SMTPC_CAPABILITY_H
#define SMTPC_CAPABILITY_H

#include "base/reply.h"

#include <stdbool.h>
#include <stdint.h>

struct capability {
	bool starttls, pipelining, chunking, binarymime, dsn, eightbit, smtputf8, requiretls,
		deliverby, priority;
	bool final;	   /* it delivers to mailboxes: LMTP */
	int64_t by_min;	   /* seconds that DELIVERBY takes at least; 0: any */
	unsigned auth;	   /* mask of mechanisms, 1u << enum sasl_mechanism */
	bool withheld;	   /* it announced CHUNKING, but can't do it */
	bool size;	   /* SIZE may be given with MAIL */
	uint64_t size_max; /* 0: no limit known */
	/* LIMITS, each 0 where there is none: */
	uint32_t mail_max;   /* transactions in a session */
	uint32_t rcpt_max;   /* recipients in a transaction */
	uint32_t domain_max; /* domains of recipients in a session */
};

struct capability capability_of(const struct reply *);

#endif
