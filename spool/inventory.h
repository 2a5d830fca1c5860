/* inventory.h - which files are in log/, and to which message a file in large/ belongs.
 *
 * OWNERSHIP  Owns the names of foreign files.
 * THREAD     Any.
 * ERRORS     False and errno when the folder can't be read.
 */
#ifndef SPOOL_INVENTORY_H
#define SPOOL_INVENTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct inventory {
	uint64_t *seq; /* of the segments, sorted */
	size_t n;
	char **foreign; /* names that nothing here makes */
	size_t nforeign;
};

bool inventory_read(struct inventory *, int log);
void inventory_fini(struct inventory *);
bool inventory_has(const struct inventory *, uint64_t seq);

bool inventory_blank(int log, const char *name);
/* Only zeros behind where the heads of a segment belong: what a crash leaves while one is made. */

bool inventory_large(const char *name, uint64_t *id);
/* The message that a file in large/ belongs to. False: it is a foreign file. */

#endif
