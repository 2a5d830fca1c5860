/* table_text.h - a table that is a text file.
 *
 * OWNERSHIP  Embedded in struct table; the rows point into the text.
 * THREAD     table_text_read(): main. table_text_get(): any.
 * ERRORS     As faults.
 */
#ifndef BASE_TABLE_TEXT_H
#define BASE_TABLE_TEXT_H

#include "base/table.h"

struct table_row {
	const char *key, *value;
	int line;
	char *folded; /* the key, where it is not in the text; or NULL */
};

struct table_text {
	char *text;
	int n;
	struct table_row *row; /* sorted by key */
};

void table_text_read(struct table_text *, const char *file, const struct table_form *,
		     const void *context, struct conf_faults *);
void table_text_fini(struct table_text *);
char *table_text_get(const struct table_text *, const char *key, int *line);

bool table_key_lower(const char *key);
/* Is it as it will be looked for? */

#endif
