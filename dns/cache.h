/* cache.h - earlier answers, as long as they are valid.
 *
 * Keyed by name and type. Entries and their bytes are both bounded: beyond that the entry used longest
 * ago goes. An answer of no lifetime is not kept; a failure is for CACHE_FAILURE_MS: a name server in trouble gets no
 * question for each message that wants its answer; and for CACHE_UNNEEDED_MS where nobody is to wait for it again. Of domains that it
 * knows to have no mail host it gives a hint (base/hint.h).
 *
 * OWNERSHIP  The cache holds a reference of its own to each answer.
 * THREAD     dns.
 * ERRORS     None.
 * SEE        RFC 2308 5 (negative answers); RFC 8767 4 (a TTL with its top bit set is a long one);
 *            RFC 9520 3.2 (failures).
 */
#ifndef DNS_CACHE_H
#define DNS_CACHE_H

#include "dns/answer.h"

#include <stddef.h>
#include <stdint.h>

enum { CACHE_BYTES_AN_ENTRY = 1024 }; /* on average, at most: some have 64 KB of text */

enum { CACHE_FAILURE_MS = 1000, CACHE_UNNEEDED_MS = 300000 };

struct cache;

struct cache *cache_new(size_t entries_max);
void cache_free(struct cache **);

void cache_bounds(struct cache *, int64_t maximal_ttl_ms, int64_t negative_ttl_ms);
/* The longest that an answer, and an answer that there is nothing, is kept. Zero until set. */

struct answer *cache_get(struct cache *, const char *name, enum answer_type, int64_t now_ms);
/* A reference for the caller, or NULL. */

void cache_put(struct cache *, const char *name, enum answer_type, struct answer *, int64_t now_ms);
/* Replaces what is there. The answer must not be changed any more. */

void cache_put_failure(struct cache *, const char *name, enum answer_type, struct answer *,
		       int64_t now_ms);
/* Likewise, of one that others need not wait for. */

void cache_clear(struct cache *);
size_t cache_count(const struct cache *);

#endif
