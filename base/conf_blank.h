/* conf_blank.h - takes one setting out of a text, so that the faults behind it are found as well.
 *
 * THREAD     Any. Pure.
 */
#ifndef BASE_CONF_BLANK_H
#define BASE_CONF_BLANK_H

#include <stdbool.h>

bool conf_blank(char *text, int line, const char *name);
/* Of a text without comments: blanks instead of the setting or section of this name that begins in this line, and of its value;
 * lines stay. False: there is none, or nothing of it but blanks. */

#endif
