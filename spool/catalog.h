/* catalog.h - every message in the queue, in order of its id.
 *
 *	page -> | id stub | id stub | ...        page -> | id stub | ...        ...
 *
 * Pages of a sorted array, none of them empty. Ids rise with time, so nearly all messages come at the end of the last;
 * but those of another node's queue come in between, and it costs no more than a page to make room for one. It answers
 * both "where is this one" and "which come next".
 *
 * OWNERSHIP  Owns its pages. The stubs are of a pool.
 * THREAD     One.
 * ERRORS     None; an id that is there already asserts.
 */
#ifndef SPOOL_CATALOG_H
#define SPOOL_CATALOG_H

#include "spool/stub.h"

struct catalog_page;

struct catalog {
	struct catalog_page **page;
	size_t n, cap; /* pages */
	size_t live;   /* messages */
};

void catalog_fini(struct catalog *);

struct stub *catalog_find(const struct catalog *, uint64_t id);	   /* or NULL */
struct stub *catalog_next(const struct catalog *, uint64_t after); /* smallest larger id, or NULL */
uint64_t catalog_last(const struct catalog *); /* the largest id; 0: there is none */

/* To go through messages one by one; valid until one comes or goes. */
struct catalog_at {
	size_t page, row;
};

struct catalog_at catalog_from(const struct catalog *, uint64_t id);
/* Before the first message with an id of at least this. */

struct stub *catalog_step(const struct catalog *, struct catalog_at *);
/* That message, or NULL; it moves behind it. */

void catalog_add(struct catalog *, struct stub *);
void catalog_merge(struct catalog *, struct stub **, size_t n);
/* Add many at once, sorted by id. */
void catalog_remove(struct catalog *, struct stub *);
void catalog_shrink(struct catalog *); /* take no more memory than is needed */

#endif
