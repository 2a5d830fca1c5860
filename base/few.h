/* few.h - memory of objects of one size that come and go by the hundred: a few of them are kept for the next.
 *
 * malloc keeps seven of a size for a thread; what comes in batches goes past these, into lists that threads share and
 * lock. With a sanitizer none are kept, so that it sees who uses what is gone.
 *
 * OWNERSHIP  Embedded; few_fini() frees what is kept, not what is taken.
 * THREAD     One: its owner's.
 * ERRORS     None.
 */
#ifndef BASE_FEW_H
#define BASE_FEW_H

#include <stddef.h>

struct few_kept;

struct few {
	struct few_kept *kept;
	size_t size; /* of each */
	int n;	     /* kept now */
};

void few_init(struct few *, size_t size);
void few_fini(struct few *);

void *few_take(struct few *);	     /* all zero */
void few_give(struct few *, void *); /* back: taken from the same */

#endif
