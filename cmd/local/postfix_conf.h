/* postfix_conf.h - a main.cf of Postfix, read: names, values and lines.
 *
 *	name = value		a line that begins with a blank goes on with the one before;
 *	# comment		a name that is given again counts as the last one has it
 *	$name ${name} $(name)	another setting's value, or Postfix's default where that is known
 *
 * OWNERSHIP  postfix_conf_free() frees all.
 * THREAD     Any.
 * ERRORS     NULL and errno: the file can't be read. A line that is none of these is passed over, as
 *            Postfix does with a warning; bad counts them.
 * SEE        POSTFIX postconf(5).
 */
#ifndef CMD_LOCAL_POSTFIX_CONF_H
#define CMD_LOCAL_POSTFIX_CONF_H

#include "base/buf.h"

#include <stdbool.h>

struct postfix_setting {
	char *name, *value;
	int line;
	bool taken; /* whoever reads it keeps this */
};

struct postfix_conf {
	int n, bad;
	struct postfix_setting *of;
};

struct postfix_conf *postfix_conf_read(const char *file);
void postfix_conf_free(struct postfix_conf **);

struct postfix_setting *postfix_conf_find(const struct postfix_conf *, const char *name);

void postfix_conf_set(struct postfix_conf *, const char *name, const char *value, int line);
/* Pointers to settings are invalid afterwards. */

bool postfix_conf_expand(const struct postfix_conf *, const char *value, struct buf *to);
/* False: it holds an expression, like ${stress?{10}:{300}}, or goes in circles. */

void postfix_conf_find_unset(const struct postfix_conf *, const char *value, struct buf *names);
/* The names in it, " $a $b", that are expanded to nothing because nobody has set them. */

#endif
