/* ending.h - how the relay ends: now, when it has nothing left to do, or for its successor.
 *
 *	ending_now()	  no further mail; sessions, and deliveries under way, have half a second, and a host that
 *			  has all of a message five to answer; called again it waits for nobody
 *	ending_drain()	  no further mail; what is incoming or active is worked on until it is
 *			  delivered or put off; then ending_now()
 *	ending_restart()  the configuration is read as at a reload; the listening sockets are kept,
 *			  and after all else has ended the program is started again with them, unless
 *			  ending_now() is called meanwhile
 *	ending_try_restart()  the same, when the program that would be started has been tried (trial.h)
 *
 * OWNERSHIP  Embedded in struct server.
 * STATES     serving, draining, closed; each may be passed over, none comes again.
 * THREAD     Main.
 * ERRORS     ending_restart(): false, says why, and the relay goes on as before.
 */
#ifndef CMD_RELAY_ENDING_H
#define CMD_RELAY_ENDING_H

#include "base/buf.h"
#include "base/timer.h"
#include "cmd/relay/trial.h"

#include <stdbool.h>

struct server;
struct request;

struct ending {
	enum { ENDING_NONE, ENDING_DRAIN, ENDING_CLOSED } state;
	bool restart;
	bool parting;	    /* smtpc_part() was called */
	bool hurries;	    /* asked to end a second time */
	bool failed;	    /* ends though nobody wants it to, for it can not begin anew */
	struct trial trial; /* while serving: of the program that is to be started */
	struct timer look;
	int64_t closed_ms, until_ms; /* steady clock; until_ms 0: however long it takes */
	int64_t told_ms;
	int quiet;		/* looks in a row at which nothing was being worked on */
	struct request *waiter; /* who asked for the drain, or for the restart; or NULL */
};

void ending_init(struct server *);
void ending_fini(struct server *);

void ending_now(struct server *);
void ending_drain(struct server *, int64_t most_ms, struct request *waiter);
/* most_ms 0: however long it takes. waiter: is answered, at the end of the drain or at once. */

bool ending_restart(struct server *, struct buf *says);
bool ending_try_restart(struct server *, struct buf *says);

void ending_await_restart(struct server *, struct request *waiter);
/* After that: he is answered once it is known whether the restart comes about. */

void ending_answer_restart(struct server *, bool comes);
/* Nothing calls it off any more, or something has. */

#endif
