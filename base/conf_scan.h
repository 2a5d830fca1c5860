/* conf_scan.h - checks the text before libconfuse parses it.
 *
 * libconfuse says nothing of a section or a comment that is never closed, counts lines wrongly
 * after some comments, keeps no line for the beginning of a section, and puts environment variables
 * in the place of ${NAME}. So: each comment and each run of blanks becomes one blank, ${NAME} is protected (a value means what it
 * says), and the beginnings of the sections are written down.
 *
 * OWNERSHIP  Embedded; conf_scan_fini() frees the heads.
 * THREAD     One.
 * ERRORS     As faults.
 */
#ifndef BASE_CONF_SCAN_H
#define BASE_CONF_SCAN_H

#include "base/conf_faults.h"

#include <stdbool.h>

struct conf_head {
	char *name, *title; /* title "" where there is none */
	int line;
	size_t title_at,
		title_end; /* where in the clean text its title is, quotes and all; the same: there is none */
	size_t brace; /* and the brace behind it */
};

struct conf_scan {
	struct buf clean; /* the same lines, for libconfuse */
	int nhead;
	struct conf_head *head;
	struct conf_head **sorted; /* by name, title and place: a file may have tens of thousands */
};

void conf_scan(struct conf_scan *, const char *text, const char *file, struct conf_faults *);
void conf_scan_fini(struct conf_scan *);

bool conf_scan_find(const char *text, const char *name, char **value);
/* The last value that a text with faults gives to the setting of this name, in whichever section;
 * NULL: none. The caller's to free. False: it can't be told. */

void conf_scan_move_titles(struct conf_scan *, bool (*titled)(const char *name));
/* libconfuse looks for each title among all before, and makes one section of two that have the same. So the titles of these
 * become the first settings of their sections, CONF_SCAN_TITLE, which stay in the order of the heads. */

#define CONF_SCAN_TITLE "\x1ftitle"

const struct conf_head *conf_scan_first(const struct conf_scan *, const char *name,
					const char *title);
/* The first section of that name and title. NULL: there is none. */

#endif
