/* replica.h - keeps a copy of the queue in NATS JetStream.
 *
 *	spool -- what becomes of its files --> +---------+ -- messages --> stream of this node
 *	      <- SPOOL_REPLICATED, _AWAY ----- | replica | <- acknowledgements
 *	                                       +---------+ -- purges ----> stream
 *
 * It knows of each file of the queue how much of it the stream has. What is missing is read from the file and
 * sent, new mail before what was there at the start; so many messages are under way at once. When one is
 * lost, refused or late, all that is under way is sent again. So what is missing takes no memory, be the
 * stream away for days, and is made up in the order of the log.
 *
 *	nats_link.c    the connection          copy.c      which file is there, and how far
 *	nats_setup.c   stream and connection   flight.c    what is under way
 *	               of the node's own      copy_orders.c  what must wait for all that was written before:
 *	nats_files.c   files for TLS                       marks, checkpoints, purges
 *	format.c       what lies in it
 *	stream_form.c  whether the stream keeps it  trouble.c   what the log is told of failures
 *
 * OWNERSHIP  replica_new() makes it.
 * THREAD     main.
 * STATES     setting up, running, fenced; beside that away or not.
 * ERRORS     Logged as `replica`, once for each change; tried again, without end.
 * SEE        format.h; spool/replicate.h.
 */
#ifndef REPLICA_REPLICA_H
#define REPLICA_REPLICA_H

#include "base/conf.h"

struct replica;
struct spool;

struct replica *replica_new(struct conf *, struct spool *);
/* Before spool_start(). NULL: nothing is to be replicated. */

void replica_start(struct replica *); /* NULL is allowed, here and below */

struct epoch_own;
struct replica_epoch;

void replica_begin(struct replica *, const struct epoch_own *, const struct replica_epoch *row);
/* The stream is ours from now on: nothing is sent before. The folder has noted so, and from now on its beats are
 * noted here. Any thread; once. */

bool replica_fenced(const struct replica *); /* the stream is another's. Any thread. */

bool replica_whole(const struct replica *);
/* The stream has the queue, but perhaps for what comes in just now. Any thread. */

bool replica_even(const struct replica *); /* all of what was there a moment ago. Any thread. */

bool replica_stop(struct replica *, bool hands_over);
/* After the spool has stopped: send what is missing, for as long as replicate_timeout. hands_over: another node
 * is to have this queue, so wait longer. True: all of it is there. */

void replica_free(struct replica **); /* before the spool is freed */

#endif
