/* conf_lines.h - where in the file each value of a configuration was given.
 *
 * OWNERSHIP  Embedded in the reader, who frees the array; file names are the reader's.
 * THREAD     One.
 * ERRORS     None.
 */
#ifndef BASE_CONF_LINES_H
#define BASE_CONF_LINES_H

#include <stdbool.h>

struct conf_lines {
	const char *file;
	int n;
	bool sorted; /* by place and item: nothing is added any more */
	struct conf_line {
		const void *place;
		int item, line; /* item: of a list */
		int given;	/* how many were before it */
	} * line;
};

void conf_lines_add(struct conf_lines *, const void *place, int item, int line);
void conf_lines_sort(struct conf_lines *);
/* Before many are looked for. */

int conf_lines_find(const struct conf_lines *, const void *place, int item, int without);
/* The line of a value, where it was given last; that of its section, without, where it is a default. */

#endif
