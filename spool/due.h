/* due.h - messages in order of the time when they are due, then of their id.
 *
 * OWNERSHIP  Owns only its array.
 * THREAD     One.
 * ERRORS     None.
 */
#ifndef SPOOL_DUE_H
#define SPOOL_DUE_H

#include "spool/stub.h"

struct due {
	struct stub **heap; /* heap[0] is not used */
	uint32_t n, cap;
};

void due_fini(struct due *);
void due_add(struct due *, struct stub *);
void due_remove(struct due *, struct stub *);
void due_moved(struct due *, struct stub *); /* its due_ms has changed */
void due_shrink(struct due *);		     /* take no more memory than is needed */
void due_all_moved(struct due *);	     /* that of any of them may have */

static inline struct stub *due_first(const struct due *d)
{
	return d->n ? d->heap[1] : NULL;
}

#endif
