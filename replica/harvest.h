/* harvest.h - read all that the stream of a node holds, and make its queue's folder again.
 *
 *	stream is closed to its old owner --> read to its end --> rebuild.h
 *
 * The folder names in the file "origin" what it was made from, once it is whole: used again, after a crash, for that very
 * adoption, and for nothing else. Any other folder of the name is put aside (life.h), for nobody knows what it
 * holds by now.
 *
 * THREAD     One of its own; it blocks.
 * ERRORS     False, and why in error; once more, from the beginning.
 */
#ifndef REPLICA_HARVEST_H
#define REPLICA_HARVEST_H

#include "base/conf.h"
#include "replica/nats_setup.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct buf;

struct harvest {
	const struct conf *conf;
	const char *node;
	const struct replica_epoch *row; /* by which its queue is taken */
	uint64_t end,
		messages; /* of the stream: the last sequence number, how many there are. Of what was
				 * read, when it has run: nothing behind that end may be purged */
	bool alone; /* its node went on without the stream: any of its messages may have been sent */
	bool insists; /* what counts is taken, though the stream is hollow */
	bool hollow; /* NATS has lost where it begins (rebuild.h): harvest_run() is false, where nobody insists */
	const char *folder; /* to be made; where it is whole already, nothing is read */
	atomic_bool *interrupt;
};

bool harvest_run(struct harvest *, struct buf *error);

/* Of which queue a folder was made. */
struct harvest_origin {
	uint64_t life, epoch, end;
};

bool harvest_origin(struct harvest_origin *, const char *spool, const char *folder);
/* False and errno: ENOENT, none was, or it is not whole; or it can't be read. */

bool harvest_remove_folder(const char *spool, const char *folder);
/* Its origin, which says that it is whole, goes first: a crash leaves any part of the rest. False and errno: it can't be removed. */

natsStatus harvest_bytes(struct nats_setup *, const char *node, uint64_t *bytes);
/* So many the stream of that node holds. At most twice as many are written here: the stream and the folder that is made
 * of it, then that folder and what is stored. NATS_NOT_FOUND: there is no such stream. */

natsStatus harvest_say_claim(struct nats_setup *, const char *node, const struct replica_epoch *);
/* To its stream, whose old owner writes nothing from then on: that its queue is taken, or has been, before anything of it is worked on.
 * NATS_ILLEGAL_STATE: another has it by now. */

void harvest_discard(struct nats_setup *, const char *node, const struct replica_epoch *,
		     uint64_t end);
/* Messages that were read by that row are needed no more. The node may have begun anew: those that it has written since stay. Where that
 * fails, it is purged when the node has begun anew, or goes with the stream. */

natsStatus harvest_retire(struct nats_setup *, const char *node, const struct replica_epoch *);
/* Its stream says so from now on, and holds nothing else. It stays for a while: the bucket may lose what it has acknowledged. */

void harvest_remove(struct nats_setup *, const char *node); /* the stream */

#endif
