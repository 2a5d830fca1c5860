/* failures.h - how often logging in has failed lately: for each client, and for each login.
 *
 * Both, since a guesser may try one name from many addresses, or many names from one. A number is
 * kept for each place in a table of fixed size that a keyed hash chooses. So it takes the same memory
 * whatever comes; where two share a place, one waits longer than need be. It is forgotten when there
 * was no failure for ten minutes.
 *
 * OWNERSHIP  smtpd.c's; all workers share it.
 * THREAD     Any; the numbers are atomic.
 * ERRORS     None.
 */
#ifndef SMTPD_FAILURES_H
#define SMTPD_FAILURES_H

#include "base/resolve.h"

#include <stdint.h>

struct failures;

struct failures *failures_new(void);
void failures_free(struct failures **);

int failures_note(struct failures *, const union address *client, const char *login,
		  int64_t now_ms);
/* One more, of a steady clock; login may be NULL. Returns how many that were lately, of the client or
 * of the login, whichever is more: 1 and up. */

int64_t failures_delay(int64_t delay_ms, int failures);
/* The delay for the last of so many failures: delay_ms for the first, twice as long for each, up to 16 times. */

#endif
