/* site_name.h - the key of a site, and its name in that.
 *
 *	TRANSPORT NAME			by MX
 *	TRANSPORT relay:OTHER>NAME	by relays; OTHER tells them from other sites of that name by relays
 *
 * For log and operator both have the same name. A version before this one kept the former of either.
 *
 * OWNERSHIP  A key is the caller's to free().
 * THREAD     Any.
 * ERRORS     None: a key that was read from a file may be torn.
 */
#ifndef QMGR_DEST_SITE_NAME_H
#define QMGR_DEST_SITE_NAME_H

#include <stdbool.h>

char *site_name_key(const char *transport, const char *relays, const char *name);
/* relays: OTHER; NULL, it is by MX. */

const char *site_name_in(const char *key);
bool site_name_by_relays(const char *key);

#endif
