/* server_reload.h - what has changed on disk takes effect in the relay that runs: settings, tables, certificates.
 *
 *	server_reload()		the configuration is read; what may fail is done first, and undone when
 *				any of it has failed; then every part gets the new settings
 *
 * OWNERSHIP  server->conf is replaced; each part has a reference of its own.
 * THREAD     Main.
 * ERRORS     What there was before stays, and the log says why.
 */
#ifndef CMD_RELAY_SERVER_RELOAD_H
#define CMD_RELAY_SERVER_RELOAD_H

#include "base/buf.h"

#include <stdbool.h>

struct conf;
struct server;

bool server_reload(struct server *, struct buf *says);
/* Read the configuration again; false: there is a fault in it, or a certificate can't be read, and
 * all stays as it is. says: the faults, or what takes effect at the next start only. */

void server_use_tables(void *server);	    /* for table_watch.h */
void server_use_certificates(void *server); /* for certificate_watch.h */

void server_listeners(const struct conf *, struct buf *to);
/* Their addresses, with commas between. */
void server_tell_manager(const struct conf *);
/* Who has started the relay hears that it is ready, and where it listens now. */

#endif
