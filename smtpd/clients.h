/* clients.h - how many connections each client has, and how fast they come.
 *
 * All workers share one table, so that a limit is exact whichever of them the kernel chose. It is
 * behind mutexes, one for a share of the table, held for one look-up when a connection begins and
 * when it ends, never while mail passes.
 *
 * A client is an IPv4 address, or the first 64 bits of an IPv6 address: whoever has one of those
 * has all of them, and whoever is on this machine has all of 127/8. Rates are GCRA: as many at once as the rate says, then evenly.
 *
 * OWNERSHIP  The table owns its records; those that say nothing any more are freed in passing.
 * THREAD     Any.
 * ERRORS     None.
 */
#ifndef SMTPD_CLIENTS_H
#define SMTPD_CLIENTS_H

#include "base/conf.h"
#include "base/resolve.h"

enum clients_answer { CLIENTS_WELCOME, CLIENTS_TOO_MANY, CLIENTS_TOO_OFTEN };

struct clients;

struct clients *clients_new(void);
void clients_free(struct clients **);

enum clients_answer clients_enter(struct clients *, const union address *, int listener,
				  const struct conf_listener *limits, int64_t now_us);
/* Welcome: counted until clients_leave() with the same address and listener. */

void clients_leave(struct clients *, const union address *, int listener);

#endif
