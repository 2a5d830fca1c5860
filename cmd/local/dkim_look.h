/* dkim_look.h - compares the keys of the configuration with their records in the DNS.
 *
 * THREAD     Main.
 * ERRORS     Told on stderr, or as the result of a key.
 */
#ifndef CMD_LOCAL_DKIM_LOOK_H
#define CMD_LOCAL_DKIM_LOOK_H

#include "base/conf.h"

bool dkim_look(struct conf *, int n, char **domain, bool json);
/* Print what is to be said of the sections and rows of these domains, or of all where n is 0. False: some key
 * can't be used, or a domain has none. */

#endif
