/* found.h - the messages that recovery has come across, by id.
 *
 * OWNERSHIP  Owns the pool that the stubs come out of.
 * THREAD     One.
 * ERRORS     None.
 */
#ifndef SPOOL_FOUND_H
#define SPOOL_FOUND_H

#include "spool/domains.h"

struct found {
	struct stub **slot; /* open addressing; a power of two of them */
	size_t n, slots;
	struct stub_pool pool;
	struct domains domains;
};

void found_fini(struct found *);
struct stub *found_get(struct found *, uint64_t id);
/* Made when it is new: STUB_INCOMING, all else 0. */
struct stub **found_take(struct found *, size_t *n);
/* All of them, sorted by id; the table is empty then. The array is the caller's, the stubs are still
 * the pool's. */

struct stub *found_among(struct stub *const *sorted, size_t n, uint64_t id); /* or NULL */

#endif
