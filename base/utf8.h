/* utf8.h - which bytes are a character.
 *
 * THREAD     Any.
 * ERRORS     None.
 * SEE        RFC 3629 4.
 */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

bool utf8_is_ascii(const char *text);
bool utf8_beyond_ascii(const char *bytes, size_t len); /* is any of them? NUL ends nothing */

size_t utf8_mark(const char *text);
/* Bytes of the mark that some editors put before the first line of a file: 3, or 0. It is no part of the text. */

size_t utf8_length(const char *text);
/* Bytes of the character that text begins with, 1 to 4; 0 when it begins with none: overlong forms,
 * surrogates, cut sequences, and the NUL at its end. */

size_t utf8_shown(const char *text);
/* The same, but 0 also for a character that a terminal obeys: C0, DEL and C1. */

size_t utf8_clean(char *to, const char *text, size_t max);
/* Copy at most max bytes of text, whole characters only, each control and each stray byte as '?',
 * and a NUL behind them: to has room for max + 1. Returns the length without the NUL. */

void utf8_put_ascii(struct buf *, const char *text, size_t len);
/* Valid text, with a '?' for each character beyond ASCII. */

void utf8_put(struct buf *, const char *text); /* all of it, clean in that way */
void utf8_put_most(struct buf *, const char *text, size_t max);

#endif
