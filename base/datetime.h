/* datetime.h - a time as header fields have it: "Tue, 01 Jul 2025 10:20:30 +0200".
 *
 * THREAD     Any.
 * SEE        RFC 5322 3.3.
 */
#ifndef BASE_DATETIME_H
#define BASE_DATETIME_H

#include <stdint.h>

enum { DATETIME_TEXT = 64 };

const char *datetime_text(int64_t wall_ms, char text[DATETIME_TEXT]);

#endif
