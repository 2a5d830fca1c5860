/* node_left.h - what lies about of an adoption that was under way when this node ended.
 *
 *	SPOOL/adopting             some of it may be in our queue, and nobody works on it (spool/adoption.h)
 *	SPOOL/adopted-from-NODE    a queue that it was made of
 *
 * Both stay until it is released or disowned. The rows say which it is to be: all that was taken together is ours as soon as one of its rows says
 * that we have it; it is not where none does, and another has one of them by now, or one is nobody's, since we had given it back.
 *
 * OWNERSHIP  Nothing.
 * THREAD     node.
 * ERRORS     What can't be read is asked for again.
 */
#ifndef REPLICA_NODE_LEFT_H
#define REPLICA_NODE_LEFT_H

#include "replica/harvest.h"

struct node;

enum left {
	LEFT_NOTHING,
	LEFT_TAKING, /* it is still to be ours */
	LEFT_LOST,   /* with all that was taken with it, what is still to be ours included */
	LEFT_OURS,
	LEFT_UNREAD /* ask again */
};

bool node_any_is_noted(
	const struct node *); /* something in our queue is neither released nor disowned */

enum left node_left(const struct node *);

bool node_left_has(const struct node *, const char *node); /* a queue that was made of that one's */

void node_left_ours_aside(const struct node *);
/* Those of which all is ours: before more is taken, which is not told from what was made of them. */

void node_left_lost_aside(const struct node *);
/* None of it is in our queue any more: its folders are for whoever wants to look. */

enum left left_of(const char *us, const struct replica_epoch *row, const struct harvest_origin *,
		  bool had);
/* Of one queue that we took by the epoch of its origin. row NULL: there is none. had: life_had() of that. */

enum left left_of_both(enum left, enum left);
/* Of two that were taken together: what has one of them has both. */

#endif
