/* refs.h - reference counts of shared objects.
 *
 * OWNERSHIP  Whoever drops the last reference frees the object.
 * THREAD     Any.
 * ERRORS     A reference to what nobody held any more, or one dropped twice, asserts.
 */
#ifndef BASE_REFS_H
#define BASE_REFS_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>

static inline void refs_take(atomic_int *refs)
{
	int before = atomic_fetch_add_explicit(refs, 1, memory_order_relaxed);
	assert(before > 0);
}

static inline bool refs_drop(atomic_int *refs)
{
	int before = atomic_fetch_sub_explicit(refs, 1, memory_order_acq_rel);
	assert(before > 0);
	return before == 1;
}
/* True: that was the last. */

#endif
