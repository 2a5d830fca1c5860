/* catalog.h - every message in the queue, in order of its id.
 *
 * A sorted array: ids rise with time, so nearly all come at its end. Those that go leave gaps,
 * closed when they are half of it. It answers both "where is this one" and "which come next".
 *
 * OWNERSHIP  Owns its array. The stubs are of a pool.
 * THREAD     One.
 * ERRORS     None; an id that is there already asserts.
 */
#ifndef SPOOL_CATALOG_H
#define SPOOL_CATALOG_H

#include "spool/stub.h"

struct catalog {
	struct row {
		uint64_t id;
		struct stub *stub; /* NULL: a gap */
	} * row;
	size_t n, cap; /* rows with the gaps */
	size_t live;   /* without */
};

void catalog_fini(struct catalog *);

struct stub *catalog_find(const struct catalog *, uint64_t id);	   /* or NULL */
struct stub *catalog_next(const struct catalog *, uint64_t after); /* smallest larger id, or NULL */
size_t catalog_from(const struct catalog *, uint64_t id);
/* The first row with an id of at least this: to go through rows one by one. */

uint64_t catalog_last(const struct catalog *); /* the largest id there has been; 0: none */
void catalog_add(struct catalog *, struct stub *);
void catalog_merge(struct catalog *, struct stub **, size_t n);
/* Add many at once, sorted by id. */
void catalog_remove(struct catalog *, struct stub *);
void catalog_shrink(struct catalog *); /* take no more memory than is needed */

#endif
