/* table_watch.h - reads tables again when their files change, without a reload.
 *
 *	once a second: stat --> changed, and at rest for a second --> read --> all who look things up
 *
 * A file that is replaced, or written in place, is taken when nobody has written to it for a second.
 * One with a fault is logged, once, and what it said before stays in force.
 *
 * OWNERSHIP  The server's.
 * THREAD     Main: not on the way of any mail.
 */
#ifndef CMD_WATCH_TABLE_WATCH_H
#define CMD_WATCH_TABLE_WATCH_H

#include "base/conf.h"
#include "base/loop.h"

struct table_watch;

struct table_watch *table_watch_new(struct loop *, void (*changed)(void *owner), void *owner);
void table_watch_free(struct table_watch **);

void table_watch_start(struct table_watch *, const struct conf *);
/* Watch the tables of this configuration, which must stay until the next call. changed() is called
 * when some are to be read. */

struct conf *table_watch_renew(struct conf *);
/* The same settings with the tables as they are now; faults are logged. A new reference. */

#endif
