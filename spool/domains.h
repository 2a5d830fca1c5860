/* domains.h - the domains of the messages in the queue, each kept once, and where a message goes.
 *
 * Of each message the index knows the domain of its sender and those of its recipients that are left,
 * as numbers, so that the shape of a long queue can be told without reading it. Nearly all messages
 * have one recipient: its domain's number is all there is. The others have a list.
 *
 * OWNERSHIP  Embedded. Names are counted: a name goes with the last message that has it.
 * THREAD     One.
 * ERRORS     None.
 */
#ifndef SPOOL_DOMAINS_H
#define SPOOL_DOMAINS_H

#include "base/envelope.h"
#include "spool/stub.h"

struct domain_count {
	uint32_t domain;
	uint32_t rcpts;
};

struct domains {
	struct domain *row; /* by number; 0 is none: the null sender's */
	uint32_t *bucket;   /* by hash: the first row */
	uint32_t n, cap, free;
	struct domain_list **list;	     /* NULL: a free one */
	uint32_t nlist, list_cap, list_free; /* none is free below the last */
};

void domains_init(struct domains *); /* all zero is an empty one, too */
void domains_fini(struct domains *);

void domains_set(struct domains *, struct stub *, const struct envelope *);
/* The domains that the message's envelope has now. */

void domains_drop(struct domains *, struct stub *); /* it knows of none any more */

void domains_move(struct domains *, struct domains *from, struct stub **, size_t n);
/* These stubs, all that the other knows of, are known here from now on. */

uint32_t domains_sender(const struct stub *);
uint32_t domains_rcpts(const struct domains *, const struct stub *, struct domain_count **);
/* How many domains its recipients have; the array stays the table's. A single one is put where the
 * pointer points already. */

uint32_t domains_find(const struct domains *, const char *name); /* its number; 0: no mail has it */
const char *domains_name(const struct domains *, uint32_t number); /* "" is the null sender */
uint32_t domains_end(const struct domains *);			   /* all numbers are below it */

#endif
