/* conf_rows.h - conf_table.h as data: what the reader, the printer, the sample and the manual walk.
 *
 *	conf_read()	conf.c
 *	  conf_scan()	  conf_scan.c	  comments, quotes and braces; where each section begins
 *	  conf_file	  conf_file.c	  libconfuse; texts and lines
 *	  conf_build()	  conf_build.c	  texts to values (conf_value.c), defaults, "like"
 *	  conf_aliases()  conf_aliases.c  aliases of sections
 *	  conf_provider_check() conf_provider.c  providers, of files of their own too
 *	  conf_check()	  conf_check.c	  what no single value shows
 *	  conf_milter_check() conf_milter.c	  filters, and who passes them
 *	  conf_dkim_check() conf_dkim.c	  signing
 *	  tables_read()	  tables_read.c	  the files that are named
 *
 * OWNERSHIP  Constant.
 * THREAD     Any.
 */
#ifndef BASE_CONF_ROWS_H
#define BASE_CONF_ROWS_H

#include "base/conf.h"

enum conf_type {
	CONF_flag,
	CONF_number,
	CONF_duration,
	CONF_size,
	CONF_percent,
	CONF_text,
	CONF_list,
	CONF_choice,
	CONF_rate,
	CONF_feedback,
};

struct conf_row {
	const char *name;
	enum conf_type type;
	const char *text; /* the default */
	int64_t low, high;
	bool reload;
	const char *choices, *sentence;
	size_t offset; /* in the section's struct */
};

enum conf_kind {
	CONF_KIND_GLOBAL,
	CONF_KIND_LISTENER,
	CONF_KIND_TRANSPORT,
	CONF_KIND_ROUTE,
	CONF_KIND_ALIAS,
	CONF_KIND_LIMIT,
	CONF_KIND_MILTER,
	CONF_KIND_DKIM,
	CONF_KIND_PROVIDER,
	CONF_KIND_SOURCE,
	CONF_KIND_FLOW,
	CONF_KIND_QUEUE,
	CONF_KIND_DNS,
	CONF_KIND_AUTH,
	CONF_KIND_TLS,
	CONF_KIND_TLS_REPORT,
	CONF_KIND_ARCHIVE,
	CONF_KIND_CLUSTER,
	CONF_KIND_VERIFY,
	CONF_KIND_EVENTS,
	CONF_KINDS
};

struct conf_section {
	const char *name;
	bool titled; /* its struct begins with title and line */
	size_t size;
	int nrow;
	const struct conf_row *row;
	const char *sentence;
};

extern const struct conf_section conf_sections[CONF_KINDS];

int conf_count(const struct conf *, enum conf_kind);
void *conf_at(const struct conf *, enum conf_kind, int i);
/* The struct of the i-th section of a kind; 1 for those without a title. */

void *conf_find(const struct conf *, enum conf_kind,
		const char *title); /* the first that has this title; or NULL */

static inline void *conf_place(const void *section, const struct conf_row *row)
{
	return (char *)section + row->offset;
}

struct conf_titled {
	char *title;
	int line;
};
/* The beginning of the struct of each titled section. */

#endif
