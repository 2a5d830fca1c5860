/* conf_file.h - a configuration file as texts with their lines.
 *
 * OWNERSHIP  Embedded in the reader; conf_file_fini() frees all.
 * THREAD     main only: libconfuse has one lexer.
 * ERRORS     As faults.
 * SEE        libconfuse 3.3.
 */
#ifndef BASE_CONF_FILE_H
#define BASE_CONF_FILE_H

#include "base/conf_faults.h"
#include "base/conf_rows.h"

struct conf_setting {
	const struct conf_row *row;
	int line;   /* 0: not known, of an empty list */
	bool added; /* a list, with +=: behind the default */
	int n;
	char **text; /* n of them: one, or the items of a list */
	int *lines;  /* of each */
};

struct conf_block { /* one section, or what stands outside of all */
	int kind;   /* enum conf_kind, or beyond it one of another grammar */
	char *title;
	int line;
	char *like; /* or NULL */
	int like_line;
	int nsetting;
	struct conf_setting *setting;
};

struct conf_file {
	int nblock;
	struct conf_block *block;
};

void conf_file_read(struct conf_file *, const char *file, struct conf_faults *);
void conf_file_parse_whole(struct conf_file *, const char *text, const char *file,
			   struct conf_faults *); /* the same of a text, called file */
void conf_file_parse(struct conf_file *, const char *text, const char *file,
		     const struct conf_section *const *sections, int kinds, struct conf_faults *);
/* With a grammar of its own: sections by kind, NULL for those of
 * enum conf_kind that may not be in it, and further ones from CONF_KINDS. */

void conf_file_fini(struct conf_file *);

char *conf_file_text(const char *file, struct conf_faults *);
/* All of a file, NUL behind; NULL when it can't be read, or holds a NUL. A pipe, as of a shell, is read to its end. */

char *conf_file_named_text(const char *file, struct conf_faults *);
/* The same of a file that a configuration names: a named pipe, to which nobody may ever write, can't be read. */

#endif
