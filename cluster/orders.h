/* orders.h - what the operator wants of all nodes, also of those that start later.
 *
 *	CLUSTER_ORDER --> script: number it, keep the last one for each name, a reset beside it, PUBLISH --> all: look
 *	ready, or published --> HGETALL --> those behind the last that was carried out here --> CLUSTER_APPLY
 *	                                                                                    --> CLUSTER_SAVE
 *
 *	PREFIX orders	id -> chance; last -> N; KIND NAME -> "N<TAB>VERB<TAB>NODE", and "<TAB>UNTIL" of a suspension that ends by itself; KIND/reset NAME: likewise; marks -> "N:MARK N:MARK ... "
 *	PREFIX news	the channel: the number of the latest
 *
 * A node keeps the id and the number in its queue's folder, so that what it did before a restart is not done again: an
 * order of its own operator's that came later stays. Where Redis has lost its data, there is another
 * id, and all that is there counts as new. So it does where Redis has lost its last writes only, and given their numbers to other
 * orders: each has a mark, by chance, and a node keeps that of the last one, too. No more than ORDERS_MAX names are kept: then those that are not suspended are
 * forgotten, and where all are, new ones are refused.
 *
 * OWNERSHIP  One of a cluster. Takes the notes that it is given.
 * THREAD     cluster's; orders_recall(): before the loop runs.
 * ERRORS     An order that Redis did not take comes back with why; nothing is done then. What makes no sense
 *            in Redis is passed over.
 */
#ifndef CLUSTER_ORDERS_H
#define CLUSTER_ORDERS_H

#include "cluster/cluster.h"
#include "cluster/link.h"

enum { ORDERS_MAX = 10000 };

struct orders;

struct orders *orders_new(struct link *, const char *node, struct loop *main);
void orders_recall(struct orders *, const char *text);
void orders_free(struct orders **);

void orders_give(struct orders *, struct cluster_order *);

extern const char orders_give_script[];
/* KEYS: the hash. ARGV: an id for a new one, the channel, KIND NAME, verb, node, how many names there may be, a mark, the time. Of
 * the marks the last hundreds stay. */

#endif
