/* recipient_index.h - at which place of an envelope an address is.
 *
 * A few are looked at one after the other. Of more there is a table, by the hash of the address, so that each of a
 * hundred thousand recipients is found as soon as one of a hundred. The local part is compared to the letter.
 *
 * OWNERSHIP  Embedded in the envelope. The table has places only: where recipients move, it is forgotten.
 * THREAD     Whoever holds the envelope.
 * ERRORS     None.
 * SEE        RFC 5321 2.4.
 */
#ifndef BASE_RECIPIENT_INDEX_H
#define BASE_RECIPIENT_INDEX_H

#include <stdint.h>

struct recipient;

#define RECIPIENT_INDEX_NONE UINT32_MAX

struct recipient_index {
	uint32_t *slot; /* a place, from 1; 0: empty. NULL: there is no table */
	uint32_t slots; /* a power of two */
	uint32_t known; /* so many of the first recipients are in it */
};

uint32_t recipient_index_find(struct recipient_index *, const struct recipient *, uint32_t n,
			      const char *address);
/* Of n recipients the first with this address, or RECIPIENT_INDEX_NONE. Those that it has seen are where they were. */

void recipient_index_forget(struct recipient_index *);

#endif
