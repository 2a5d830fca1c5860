/* alias_heard.h - what servers have said of aliases, while an address is expanded.
 *
 *	expansion -- alias_heard_get() --> heard; or wanted, and the expansion is made again later
 *	alias_learn.h <-- alias_heard_wanted()			one after the other
 *	              --> alias_heard_put()
 *
 * OWNERSHIP  Embedded, all zero when empty; alias_heard_forget().
 * THREAD     One at a time.
 * ERRORS     None.
 */
#ifndef SMTPD_ALIAS_HEARD_H
#define SMTPD_ALIAS_HEARD_H

#include <stdbool.h>
#include <stddef.h>

struct alias_row;

struct alias_heard {
	size_t bytes;			 /* what all of it takes in memory */
	size_t said;			 /* of that, what servers said */
	struct alias_row *row;		 /* by key */
	struct alias_row *wanted, *last; /* those that nobody was asked about, in their order */
};

bool alias_heard_get(struct alias_heard *, const char *key, const char **value);
/* NULL: it is no alias. False: nobody has said so far; it is wanted now. */

const char *alias_heard_wanted(const struct alias_heard *);    /* the key of the first; or NULL */
void alias_heard_put(struct alias_heard *, const char *value); /* of that one; copied, or NULL */

void alias_heard_forget(struct alias_heard *);

#endif
