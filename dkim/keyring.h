/* keyring.h - keys of rows of dkim_keys, read when the first message needs them, and kept for the next.
 *
 * At most KEYRING_MAX are kept, those that were not used for longest go first, so that a table of any
 * length costs nothing at a start and a bounded amount of memory. A key whose file has changed is read again.
 *
 * OWNERSHIP  Counted: each keyring_take() has its keyring_give().
 * THREAD     keyring_take(): one that may wait for the disk, the pool's or the maildrop's. The rest: any; there
 *            is a lock, which is not held while a file is read.
 * ERRORS     NULL, and why; condition dkim_key_unreadable until the key can be read. Whoever changes the rows
 *            clears it, since no row may name that file any more.
 */
#ifndef DKIM_KEYRING_H
#define DKIM_KEYRING_H

#include "base/conf.h"

enum { KEYRING_MAX = 1000 };

const struct conf_dkim *keyring_take(const char *domain, const char *selector, const char *file,
				     struct buf *why);
/* A signer with the defaults of a section. */

void keyring_give(const struct conf_dkim *); /* NULL is allowed */

#endif
