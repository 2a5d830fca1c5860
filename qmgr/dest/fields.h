/* fields.h - fields of a line: <TAB>name=value, in any order.
 *
 * What is kept of hosts and sites, and told to other nodes, is lines of such. Times are of the steady clock here, or of
 * the queue's; in the text they are the system's date (base/date.h), milliseconds since 1970: the queue's is each node's own.
 *
 * OWNERSHIP  A value lies in the room that it was asked for with, until that is used again.
 * THREAD     Any.
 * ERRORS     A field that is not there, or makes no sense, is 0 or NULL.
 */
#ifndef QMGR_DEST_FIELDS_H
#define QMGR_DEST_FIELDS_H

#include "base/buf.h"

#include <stdint.h>

const char *fields_get(const char *line, const char *name, struct buf *room);
int64_t fields_number(const char *line, const char *name, struct buf *room);

int64_t fields_measured(const char *line, const char *name, struct buf *room, int64_t most);
/* 1 to most, or 0: what was measured can't be negative, or more than this. */

int64_t fields_future(const char *line, const char *name, struct buf *room, int64_t most_ms);
/* Steady clock, at most so far ahead: a wall clock that was put back must not keep a host out for years. 0: it is past. */

int64_t fields_moment(const char *line, const char *name, struct buf *room);
/* By the queue's clock, whenever it was. */

void fields_put_number(struct buf *, const char *name, int64_t); /* nothing where it is 0 */
void fields_put_time(struct buf *, const char *name, int64_t steady_ms);
void fields_put_moment(struct buf *, const char *name, int64_t wall_ms); /* of the queue's clock */

#endif
