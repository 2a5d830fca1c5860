/* words.h - splits a value into words, and a text into lines.
 *
 * THREAD     Any. Pure.
 */
#ifndef BASE_WORDS_H
#define BASE_WORDS_H

#include <stdbool.h>
#include <stddef.h>

static inline bool words_is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

const char *words_next(const char **text, size_t *len);
/* The next word, and step over it; of length 0 at the end. */

char *words_line(const char **text);
/* A copy of the next line, without its end, and step over it; NULL: there is none. */

const char *words_rest(const char **text); /* all that is left, without blanks in front */
bool words_is(const char *word, size_t len, const char *wanted); /* in any case */

bool words_dsn(const char *word, size_t len, const char *classes);
/* An enhanced code, "5.1.2", of one of these classes (RFC 3463 2)? */

const char *words_unprintable(const char *text);
/* The first byte that is not printable ASCII or a blank; NULL: none. */

#endif
