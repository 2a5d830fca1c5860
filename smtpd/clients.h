/* clients.h - how many connections each client has, and how fast they come.
 *
 * All workers share one table, so that a limit is exact whichever of them the kernel chose. It is
 * behind mutexes, one for a share of the table, held for one look-up when a connection begins and
 * when it ends, never while mail passes.
 *
 * A client is an IPv4 address, or the first 64 bits of an IPv6 address: whoever has one of those
 * has all of them, and whoever is on this machine has all of 127/8. Rates are GCRA: as many at once as the rate says, then evenly.
 *
 * In a cluster rates are those of all nodes together, by the listener's name: what comes is told, and what all have had
 * is heard. How many connections there are at once is this node's own matter (docs/decisions/0094).
 *
 *	clients_enter() --> SHARING_SPENT --> [ cluster ] --> SHARING_TOTAL, SHARING_PARTS --> limiter --> clients_total(), _parts()
 *
 * OWNERSHIP  The table owns its records; those that say nothing any more are freed in passing.
 * THREAD     Any.
 * ERRORS     None.
 */
#ifndef SMTPD_CLIENTS_H
#define SMTPD_CLIENTS_H

#include "base/conf.h"
#include "base/resolve.h"
#include "base/sharing.h"

enum clients_answer { CLIENTS_WELCOME, CLIENTS_TOO_MANY, CLIENTS_TOO_OFTEN };

struct clients;

struct clients *clients_new(void);
void clients_free(struct clients **);

enum clients_answer clients_enter(struct clients *, const union address *, int listener,
				  const struct conf_listener *limits, int64_t now_us);
/* Welcome: counted until clients_leave() with the same address and listener. */

void clients_leave(struct clients *, const union address *, int listener);

void clients_share(struct clients *, struct loop *reply_to,
		   void (*to_cluster)(void *context, struct note *), void *context);
/* Before the start: there is a cluster. SHARING_TOTAL comes to that loop. */

bool clients_total(struct clients *, const struct sharing_total *); /* false: of something else */
void clients_parts(struct clients *,
		   int64_t parts); /* away from the others a rate is divided by so many */

#endif
