/* milter_watch.h - looks whether the filters answer, so that an outage is known before mail suffers, and its end at once.
 *
 *	once a second: a filter that is away, or has given no sign of life for MILTER_WATCH_QUIET_MS --> probe
 *
 * Filters that no mail passes are left alone.
 *
 * OWNERSHIP  The server's.
 * THREAD     Main: not on the way of any mail.
 * ERRORS     As conditions and in the log: milter_health.h.
 */
#ifndef CMD_WATCH_MILTER_WATCH_H
#define CMD_WATCH_MILTER_WATCH_H

#include "base/conf.h"
#include "base/loop.h"

enum { MILTER_WATCH_QUIET_MS = 15000 };

struct milter_watch;

struct milter_watch *milter_watch_new(struct loop *);
void milter_watch_free(struct milter_watch **);

void milter_watch_start(struct milter_watch *, struct conf *);
/* Watch the filters of this configuration; takes a reference. */

#endif
