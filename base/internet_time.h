/* internet_time.h - times as protocols write them: "2026-03-01T08:00:00Z", "2026-03-01T09:00:00.5+01:00".
 *
 * THREAD     Any. Pure.
 * ERRORS     What is not one, or no day of the calendar, is false.
 * SEE        RFC 3339 5.6.
 */
#ifndef BASE_INTERNET_TIME_H
#define BASE_INTERNET_TIME_H

#include <stdbool.h>
#include <stdint.h>

enum { INTERNET_TIME_TEXT = 32 };

bool internet_time_parse(const char *text, int64_t *wall_ms);
/* All of the text. Milliseconds since 1970, from year 0 to 9999; what is finer is cut off, and a leap second is the
 * first one of the next minute. */

const char *internet_time_text(int64_t wall_ms, char text[INTERNET_TIME_TEXT]);
/* In UTC, by whole seconds. From 1970 to 9999. */

#endif
