/* check_hops.h - rows of credentials and tls_policy for next hops that mail never goes to, and where an archive's copies go.
 *
 * A row that is spelt otherwise than the route's next hop is none: mail goes without that login, or without that proof. Rows
 * of CDB files are not seen; where routes are in one, nothing is said.
 *
 * THREAD     Main.
 */
#ifndef CMD_LOCAL_CHECK_HOPS_H
#define CMD_LOCAL_CHECK_HOPS_H

#include "base/conf.h"

void check_hops(const struct conf *, void (*tell)(void *context, int line, const char *text),
		void *context);

#endif
