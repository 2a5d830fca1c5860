/* event.h - one line of the relay's log, field by field.
 *
 * THREAD     main.
 * ERRORS     A line that is no event has no fields.
 * SEE        base/log_line.h, which reads it.
 */
#ifndef SIM_EVENT_H
#define SIM_EVENT_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

bool event_field(const char *line, const char *key, struct buf *to);
/* The value of a key, unquoted; time and event are keys too. False: it has none. */

bool event_time(const char *text, int64_t *wall_ms); /* of what begins with one */

#endif
