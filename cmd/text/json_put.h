/* json_put.h - members of a JSON object, each followed by a comma; the end takes the last one's place.
 *
 * THREAD     Any.
 * ERRORS     None.
 * SEE        base/log.h: log_json_string() for a string alone.
 */
#ifndef CMD_TEXT_JSON_PUT_H
#define CMD_TEXT_JSON_PUT_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

void json_put_text(struct buf *, const char *name, const char *text); /* NULL becomes null */
void json_put_said(struct buf *, const char *name, const char *text); /* "" becomes null */
void json_put_number(struct buf *, const char *name, int64_t);
void json_put_code(struct buf *, int code); /* of a reply; 0, there was none, becomes null */
void json_put_flag(struct buf *, const char *name, bool);
void json_put_seconds(struct buf *, const char *name, int64_t ms); /* 1.500 */
void json_put_time(struct buf *, const char *name, int64_t wall_ms);
/* The same, as moment.h shows it; 0 becomes null. */
void json_put_lines(struct buf *, const char *name, const char *lines);
/* An array of objects that stand one a line. */

void json_put_end(struct buf *, char bracket);	/* '}' or ']' of a member */
void json_put_last(struct buf *, char bracket); /* of the whole */
void json_put_line(struct buf *);		/* the same of an object, and the end of its line */

#endif
