/* base64.h - base64 as RFC 4648 4 has it, strict: no other characters, padding where it belongs.
 *
 * THREAD     Any. Pure.
 */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include "base/buf.h"

#include <stdbool.h>

void base64_encode(struct buf *to, const void *from, size_t len); /* appends */

bool base64_decode(struct buf *to, const char *from, size_t len);
/* Appends. False: that is no base64, and nothing was appended. */

#endif
