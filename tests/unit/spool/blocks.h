/* blocks.h - the bytes of one file in memory: sparse, its pages shared between copies.
 *
 * Bytes never written, and those that were cut off, are zeros.
 *
 * OWNERSHIP  blocks_fini() gives the pages back. A copy costs only its table.
 * THREAD     One at a time.
 */
#ifndef TESTS_UNIT_SPOOL_BLOCKS_H
#define TESTS_UNIT_SPOOL_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

enum { BLOCKS_PAGE = 4096, BLOCKS_SECTOR = 512 };

struct blocks {
	uint64_t size; /* of the file */
	size_t npage;
	struct page **page; /* NULL: all zeros */
};

void blocks_fini(struct blocks *);
void blocks_copy(struct blocks *to, const struct blocks *from); /* to: initialised, or zeros */
void blocks_resize(struct blocks *, uint64_t size);
void blocks_write(struct blocks *, uint64_t at, const void *, size_t len); /* below size only */
size_t blocks_read(const struct blocks *, uint64_t at, void *, size_t len);

#endif
