/* table.h - a file of keys and values: text, or CDB.
 *
 *	# a comment				a file whose name ends in .cdb:
 *	user@example.com    value		keys and values as they are,
 *	"odd one"@x.test    value		each with or without a NUL behind
 *	.example.org        a long value
 *		that goes on here
 *
 * Keys are compared in lower case, domains in the form of name_key.h; "@domain" and "domain" are the same key. A table never changes;
 * when its file has, another is read. A CDB file is copied into memory that nobody can cut short,
 * so that whoever writes over the file, instead of replacing it, does no harm here.
 *
 * A server may have the rows instead, "socketmap:...": such a table is empty here, and names it.
 *
 * OWNERSHIP  Counted.
 * THREAD     table_read(), table_fresh(), table_faulty(): main. The rest: any.
 * ERRORS     As faults with file and line; of a CDB file with the number of the record.
 * SEE        POSTFIX postmap(1), "TABLE FILE FORMAT"; aliases(5); cdb(5).
 */
#ifndef BASE_TABLE_H
#define BASE_TABLE_H

#include "base/conf_faults.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct table;
struct socketmap_name;

/* The form that the rows of a table must have. */
struct table_form {
	bool colon;	   /* a colon ends the key, as in aliases(5); else a blank does */
	const char *shape; /* "address: address, address" */
	const char *(*check)(const void *context, const char *key, const char *value,
			     struct buf *why);
	/* NULL: the row is good. Else where in the value it is not, and why says what is wrong. */

	bool verbatim; /* keys are no names: only their ASCII letters are folded, not the domains of name_key.h */

	char *(*fold)(const char *key);
	/* NULL, or: the one spelling of a key that is in lower case and in the form of name_key.h. NULL: it has that. */

	bool bare; /* there need be nothing behind a key */

	bool (*two)(const char *rest);
	/* NULL, or: does the first word behind a key belong to it too? One blank is between them then. */
};

/* Where a value was found, for log and operator. */
struct table_origin {
	const char *file; /* the table's, or the configuration's */
	int line;	  /* 0: not known, of a CDB file */
};

struct table *table_read(const char *file, const struct table_form *, const void *context,
			 struct conf_faults *);
/* NULL when there is a fault in it. file must live as long as the faults. */

struct table *table_ref(struct table *);
void table_unref(struct table *); /* NULL is allowed */

const char *table_file(const struct table *);

char *table_get(const struct table *, const char *key, struct table_origin *);
/* The value of exactly this key, in whatever spelling of its domain, which is in lower case and has no '@' in front; the caller frees
 * it. NULL: none. A line's end inside of the value reads as a blank. */

const char *table_file(const struct table *);

const struct socketmap_name *table_server(const struct table *);
/* Who is to be asked for it, where nothing is found here; NULL: it is a file. */

void table_each(const struct table *,
		void (*row)(void *context, const char *key, const char *value), void *context);
/* Every row: of a text by key, of CDB as they lie there. */

char *table_any(const struct table *, const char *except, uint64_t choice);
/* The value of some row of a text, but not of that key; the same choice is the same row. NULL: there
 * is none. */

enum table_freshness {
	TABLE_FRESH,   /* the file is as it was when it was read, or found faulty */
	TABLE_WRITTEN, /* it is not, but may still be being written */
	TABLE_STALE,   /* it is not, and rests */
};

enum table_freshness table_fresh(const struct table *);

void table_faulty(struct table *);
/* The file as it is now can't be used, and need not be read again. main. */

#endif
