/* dovecot_line.h - one line of Dovecot's auth protocol: words between tabs.
 *
 *	OK	7	user=anna	nologin
 *
 * A cursor: it cuts the line in place, and undoes the escapes of values (\001 and a character).
 *
 * OWNERSHIP  Words lie in the line.
 * THREAD     Any. Pure.
 * ERRORS     A word that is not there is "".
 * SEE        Dovecot's "Authentication Protocol", 1.2.
 */
#ifndef SMTPD_DOVECOT_LINE_H
#define SMTPD_DOVECOT_LINE_H

#include <stdbool.h>
#include <stdint.h>

struct dovecot_line {
	char *rest; /* behind what was taken; "" at the end */
};

void dovecot_line_init(struct dovecot_line *, char *line); /* without its LF, and without a NUL */

char *dovecot_line_next(struct dovecot_line *, bool *more);
/* The next word. more, which may be NULL: false when there was none. */

bool dovecot_line_number(struct dovecot_line *, uint32_t *number);
/* The next word is a number, and nothing else. */

const char *dovecot_line_value(const char *word, const char *key);
/* The value behind "key=", or "" for the word "key" alone; NULL: another key. */

#endif
