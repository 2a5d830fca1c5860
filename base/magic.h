/* magic.h - checks that a void pointer in a callback points to the right object.
 *
 *	struct thing { unsigned magic; ... };	s->magic = THING_MAGIC when it is made
 *	magic_check(thing, THING_MAGIC)		first in each callback
 *	magic_free(thing)			clears it, and frees the thing
 *
 * A callback that is called for another object, or for one that is freed, asserts before it has
 * written anything.
 */
#ifndef BASE_MAGIC_H
#define BASE_MAGIC_H

#include <assert.h>
#include <stdlib.h>

#define magic_check(object, number) assert((object)->magic == (number))

#define magic_clear(object)                                                                        \
	do {                                                                                       \
		assert((object)->magic != 0);                                                      \
		(object)->magic = 0;                                                               \
	} while (0)

#define magic_free(object)                                                                         \
	do {                                                                                       \
		magic_clear(object);                                                               \
		free(object);                                                                      \
	} while (0)

#endif
