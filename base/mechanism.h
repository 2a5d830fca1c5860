/* mechanism.h - the SASL mechanisms.
 *
 *	X(constant, name, hash of its keys or -1, bound to the channel, a token goes to the backend)
 *
 * THREAD     Any. Pure.
 * SEE        RFC 4616 (PLAIN), 5802, 7677 (SCRAM), 7628 (OAUTHBEARER); 9266 (tls-exporter).
 */
#ifndef BASE_MECHANISM_H
#define BASE_MECHANISM_H

#include "base/user_value.h"

#define MECHANISMS(X)                                                                              \
	X(PLAIN, "PLAIN", -1, false, false)                                                        \
	X(LOGIN, "LOGIN", -1, false, false)                                                        \
	X(SCRAM_SHA_1, "SCRAM-SHA-1", USER_SHA1, false, false)                                     \
	X(SCRAM_SHA_1_PLUS, "SCRAM-SHA-1-PLUS", USER_SHA1, true, false)                            \
	X(SCRAM_SHA_256, "SCRAM-SHA-256", USER_SHA256, false, false)                               \
	X(SCRAM_SHA_256_PLUS, "SCRAM-SHA-256-PLUS", USER_SHA256, true, false)                      \
	X(OAUTHBEARER, "OAUTHBEARER", -1, false, true)                                             \
	X(XOAUTH2, "XOAUTH2", -1, false, true)

enum mechanism {
#define X(constant, ...) MECHANISM_##constant,
	MECHANISMS(X)
#undef X
		MECHANISM_COUNT /* none of them */
};

#define MECHANISM_BIT(m) (1U << (m))

struct mechanism_row {
	const char *name;
	int hash;   /* enum user_hash, or -1 */
	bool plus;  /* bound to the channel */
	bool token; /* only the backend can judge it */
};

const struct mechanism_row *mechanism_row(enum mechanism);

enum mechanism mechanism_find(const char *name);
/* In any case. MECHANISM_COUNT: none of that name. */

#endif
