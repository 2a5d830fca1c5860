/* certificate_watch.h - the certificates of listeners: read anew when their files change, and watched as
 * they grow old.
 *
 *	once a second: stat --> changed, and the same a second later --> sessions to come have the new ones
 *	               the end of each --> metric certificate_expiry_seconds
 *	once a day: one that ends within two weeks --> log
 *
 * Certificate, key and OCSP answer may be replaced one after the other: as long as they do not fit together
 * the old ones stay, which is logged, and with the next change it is tried again. Nor does one that has expired, or is not valid yet,
 * take the place of one that is valid: only a start uses that. The latter is read once it is valid.
 *
 * OWNERSHIP  The server's.
 * THREAD     Main: not on the way of any mail.
 */
#ifndef CMD_WATCH_CERTIFICATE_WATCH_H
#define CMD_WATCH_CERTIFICATE_WATCH_H

#include "base/buf.h"
#include "base/conf.h"
#include "base/loop.h"

#define EXPIRY_NEAR_MS DAYS(14)

struct certificate_watch;

struct certificate_watch *certificate_watch_new(struct loop *, void (*changed)(void *owner),
						void *owner);
void certificate_watch_free(struct certificate_watch **);

void certificate_watch_start(struct certificate_watch *, struct conf *);
/* Watch those of this configuration, which have just been read. Takes a reference. */

void certificate_watch_used(struct certificate_watch *); /* likewise, once they have changed */

bool certificate_watch_good(const struct certificate_watch *, const struct conf *,
			    struct buf *says);
/* Its files have none that has expired, or is not valid yet, where there is a good one now. */

#endif
