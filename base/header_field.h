/* header_field.h - the lines of a message's header, one field each with its folded lines.
 *
 * THREAD     Any. Pure.
 * SEE        RFC 5322 2.2; 4.5: white space in front of the colon is allowed.
 */
#ifndef BASE_HEADER_FIELD_H
#define BASE_HEADER_FIELD_H

#include <stdbool.h>
#include <stddef.h>

size_t header_field_name(const char *line, size_t len);
/* The length of the field name that a line begins with; 0: it is no field. */

bool header_field_is(const char *name, size_t len, const char *wanted);
/* Is it this name? In any case of letters. */

size_t header_field_end(const char *text, size_t len);
/* text begins with a field: how long that is with its folded lines, and their CRLFs. */

#endif
