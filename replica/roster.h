/* roster.h - the bucket that all nodes share: a row for each, read whole, written by compare-and-set.
 *
 * Engines before 2.9.21 and 2.10 (nats-server issue 4320), and later ones that have just changed their leader, may grant
 * two writes by one revision when both come in the same moment: the later one stays, and both are told that it went
 * well. So a write that others may compete with counts when its author has, a while later, written once more by the
 * revision that it got: only one of the two can.
 *
 * OWNERSHIP  Embedded; roster_fini() ends it. Rows are valid until the next roster_read().
 * THREAD     One; the calls block.
 * ERRORS     The library's status. A write that was not answered may have been done all the same: the next
 *            roster_read() says what holds.
 * SEE        format.h, struct replica_epoch; epoch.h for what follows from it.
 */
#ifndef REPLICA_ROSTER_H
#define REPLICA_ROSTER_H

#include "replica/epoch.h"
#include "replica/nats_setup.h"

struct roster_row {
	char node[REPLICA_NODE_MAX + 1];
	struct replica_epoch is;
	struct sighting seen;
	int64_t ahead_ms; /* its seen_ms was ahead of the wall clock here when it was first seen */
	uint64_t confirmed; /* the revision of ours by which we adopt it; see above */
	bool there;	    /* in this reading */
	int64_t rest_ms; /* up-clock: not to be adopted unasked before: it was too large for us */
	uint64_t left;	 /* the revision by which it was left to others, which was logged */
	uint64_t hollow; /* the life whose stream was seen to have lost where it begins; 0: none */
	uint64_t insisted; /* that life, by order: what is left is taken */
};

struct roster {
	struct nats_setup *nats;
	kvStore *kv;
	struct roster_row *row;
	int n;
	bool mended; /* by the last reading: it had limits that refuse or remove rows */
};

void roster_init(struct roster *, struct nats_setup *);
void roster_fini(struct roster *);
void roster_disconnect(
	struct roster *); /* before the connection goes; the rows stay as they were seen */
natsStatus roster_read(struct roster *, int64_t now_ms);
struct roster_row *roster_find(const struct roster *, const char *node); /* NULL: none */

int64_t roster_ahead_ms(const struct roster_row *);
/* So much the clock of whoever wrote it is ahead of the one here; 0: they agree, but for a minute, or nobody knows, since this
 * node saw nothing of that one before. */

natsStatus roster_write(struct roster *, const char *node, const struct replica_epoch *,
			uint64_t revision, uint64_t *written);
/* revision: of the row that it replaces; 0: there is none. NATS_OK: it was that one, and no other has
 * written meanwhile. written: the revision of ours; may be NULL. */

natsStatus roster_number(struct roster *, const char *node, unsigned *number);
/* The number of this node, which has no row, in its ids, taken for ever; none that another has by its row, or, where that is lost, by
 * its stream. NATS_ILLEGAL_STATE: there are too many. */

#endif
