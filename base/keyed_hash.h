/* keyed_hash.h - hashes that nobody outside can make collide, and uthash with them.
 *
 * With a known hash function anybody could choose thousands of domains, hosts or addresses with the same
 * hash, and make each look-up walk a long list. SipHash with a random key prevents that.
 * Until keyed_hash_choose() has been called the key is fixed, so that tests and simulations are the
 * same each time.
 *
 * THREAD     keyed_hash_choose(): main, before any table is made. The rest: any.
 * ERRORS     A kernel without random numbers ends the program.
 * SEE        Aumasson and Bernstein, "SipHash: a fast short-input PRF"; here SipHash-1-3.
 */
#ifndef BASE_KEYED_HASH_H
#define BASE_KEYED_HASH_H

#include "base/mem.h"

#include <stddef.h>
#include <stdint.h>

/* All tables of uthash take their hash from here: it is included nowhere else. */
#define HASH_FUNCTION(key, len, hash) (hash) = (unsigned)keyed_hash((key), (len))
/* Without memory they end as all of the program does, not by exit(3) beside running threads. */
#define uthash_malloc(size) mem_alloc(size)
#include <uthash.h>

/* Walk a table, in the order in which its rows came; the current one may be removed or freed by the body. */
#define hash_each(type, row, table)                                                                \
	for (type *row = (table), *row##_next = row ? row->hh.next : NULL; row;                    \
	     row = row##_next, row##_next = row ? row->hh.next : NULL)

void keyed_hash_choose(void); /* a key for this process */
uint64_t keyed_hash(const void *, size_t len);
uint64_t keyed_hash_with(const uint64_t key[2], const void *, size_t len);

#endif
