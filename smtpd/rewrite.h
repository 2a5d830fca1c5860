/* rewrite.h - rewrites an address on its way in.
 *
 *	sender:     sender_canonical, canonical, masquerade
 *	recipient:  recipient_canonical, canonical
 *
 * Each table is asked again for what it has answered, until that stays as it is: POSTFIX
 * cleanup_map11. More than REWRITE_STEPS_MAX times is a circle.
 *
 * THREAD     The session's worker. Pure, but for the tables.
 * SEE        POSTFIX ADDRESS_REWRITING_README; canonical(5).
 */
#ifndef SMTPD_REWRITE_H
#define SMTPD_REWRITE_H

#include "base/conf.h"
#include "base/table.h"

enum { REWRITE_STEPS_MAX = 20 };

/* Changes of an address, one entry a step; for sluice route. */
struct rewrite_step {
	const char *by; /* the setting */
	struct table_origin origin;
	char *to;
};

struct rewrite {
	int n;
	struct rewrite_step step[3 * REWRITE_STEPS_MAX];
};

bool rewrite_sender(const struct conf *, const char *address, struct rewrite *);
bool rewrite_recipient(const struct conf *, const char *address, struct rewrite *);
/* False: a circle. The null sender is rewritten only where a table has the key <>. */

const char *rewrite_result(const struct rewrite *, const char *address);
/* The address in the end. */

void rewrite_fini(struct rewrite *);

#endif
