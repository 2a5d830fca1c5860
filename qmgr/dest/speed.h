/* speed.h - how fast a host is, and how deep a pipeline to it should be.
 *
 *	r	the round trip: the least that was seen
 *	s	the service: what the host needs for a message, from one reply to the next while the
 *		connection was busy, or what is left of a lone message's time without the round trips
 *
 * A connection is kept busy by 1 + r / s messages: until then a place in its pipeline costs a message
 * nothing. Beyond that a message waits for those before it, and another connection is better where
 * it may be had in less time; and where it may not, the message is as well off unbound, unless
 * the way to the host is long enough that the connection would idle meanwhile.
 *
 * Numbers in, numbers out.
 *
 * OWNERSHIP  Embedded in struct host.
 * THREAD     qmgr.
 * ERRORS     None. 0 is "not known yet".
 */
#ifndef QMGR_DEST_SPEED_H
#define QMGR_DEST_SPEED_H

#include <stdbool.h>
#include <stdint.h>

struct speed {
	int64_t r_us, s_us; /* smoothed; 0: unknown */
	int64_t setup_us;   /* from connect to ready, smoothed */
};

/* One delivery that came to its end. */
struct speed_sample {
	int64_t began_us, ended_us; /* steady clock: first byte of MAIL, last reply */
	int64_t before_us;	    /* end of the delivery before it on the connection; 0: none */
	int trips;		    /* round trips that it takes alone, at least 1 */
	int behind;		    /* of them, such that it takes behind another */
};

void speed_round_trip(struct speed *, int64_t us);
void speed_set_up(struct speed *, int64_t us);
void speed_served(struct speed *, const struct speed_sample *);

/* Both with waited_us: how long the connection's first message has been without an answer. */

int speed_free_depth(const struct speed *, int64_t waited_us);
/* So many messages one connection may carry at no cost to any of them; at least 1. */

int speed_deep_depth(const struct speed *, int64_t waited_us);
/* So many where no further connection may be had: at a slow host no more than keep it busy, for who comes next
 * waits for all of them, whoever's turn it is. */

int64_t speed_share_us(const struct speed *, int trips, int depth);
/* Time that one of `depth` messages in a pipeline takes of its connection, where each takes so many round
 * trips alone; 0: unknown. */

bool speed_worth_connecting(const struct speed *, int ahead, int64_t waited_us);
/* Would a new connection be ready before `ahead` messages in a pipeline are served? */

#endif
