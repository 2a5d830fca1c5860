/* harvest.h - read all that the stream of a node holds, and make its queue's folder again.
 *
 *	stream is closed to its old owner --> read to its end --> rebuild.h
 *
 * THREAD     One of its own; it blocks.
 * ERRORS     False, and why in error; once more, from the beginning.
 */
#ifndef REPLICA_HARVEST_H
#define REPLICA_HARVEST_H

#include "base/conf.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct buf;

struct harvest {
	const struct conf *conf;
	const char *node;
	uint64_t epoch;	    /* the one by which its queue is taken */
	const char *folder; /* to be made; where it is whole already, nothing is read */
	atomic_bool *interrupt;
};

bool harvest_run(struct harvest *, struct buf *error);
bool harvest_discard(struct harvest *, struct buf *error);
/* The stream goes. */

#endif
