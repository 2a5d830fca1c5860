/* crc32c.h - the checksum that detects damage: CRC32C, as in RFC 3720.
 *
 * THREAD     Any. Pure.
 * ERRORS     None. It finds what disks and memory do to bytes, not what people do.
 */
#ifndef BASE_CRC32C_H
#define BASE_CRC32C_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

uint32_t crc32c(uint32_t before, const void *, size_t len);
/* Begin with 0, and go on with what came back. */

enum { CRC32C_LINE = 13 }; /* "crc 89ABCDEF\n" */

bool crc32c_text_good(const char *text, size_t len, const char *first_line);
/* Does a text begin with that line, and end with the line that has the checksum of all before? A NUL is behind it. */

#endif
