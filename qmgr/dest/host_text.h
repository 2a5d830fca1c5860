/* host_text.h - what is known of one host, as fields: for the disk, and for other nodes.
 *
 * OWNERSHIP  None.
 * THREAD     qmgr, or main while that does not run.
 * ERRORS     A field that makes no sense is passed over.
 * SEE        fields.h; base/fact.h, whose parts these are; destdb_text.h, the lines on disk.
 */
#ifndef QMGR_DEST_HOST_TEXT_H
#define QMGR_DEST_HOST_TEXT_H

#include "base/buf.h"
#include "qmgr/dest/host.h"

void host_text_put(struct buf *, const struct host *, enum fact_which);
/* The fields of it that a fact has; none where nothing is known. */

void host_text_read(struct host *, enum fact_which, const char *text);
/* The same, of no host in the table for FACT_HEALTH: what that means for one is pooling.h's. */

void host_text_put_all(struct buf *, const struct host *);
void host_text_read_all(struct host *, const char *line, struct buf *room);
/* All parts but FACT_PLAIN, of a line on disk: a host that was out is so again. */

void host_text_put_reply(struct buf *, const struct verdict *); /* NULL: nothing */
struct verdict *host_text_reply(const char *line, struct buf *room);
/* A reference; NULL: there is none. */

void host_text_put_plain(struct buf *, const struct host_plain *);

bool host_text_address(const char *text, union address *);
/* False: it has none. */

#endif
