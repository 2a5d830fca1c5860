/* event.h - one line of the relay's log, in the form text or json.
 *
 *	2026-11-21T08:00:00.125Z info sent id=4A2B to=a@b.test relay=mx.b.test[192.0.2.1]:25
 *	{"time":"2026-11-21T08:00:00.125Z","level":"info","event":"sent","id":"4A2B"}
 *
 * THREAD     main.
 * ERRORS     A line that is no event has no fields.
 * SEE        sluice(8), "LOG".
 */
#ifndef SIM_EVENT_H
#define SIM_EVENT_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

bool event_field(const char *line, const char *key, struct buf *to);
/* The value of a key, unquoted; time, level and event are keys too. False: it has none. */

bool event_time(const char *text, int64_t *wall_ms); /* of what begins with one */

#endif
