/* dkim_rows.h - rows of dkim_keys: "example.org	s1 /etc/dkim/s1.pem, s2 /etc/dkim/s2.pem".
 *
 * OWNERSHIP  dkim_rows_fini() frees the texts.
 * THREAD     Any.
 * SEE        dkim/keyring.h, which reads the keys.
 */
#ifndef BASE_DKIM_ROWS_H
#define BASE_DKIM_ROWS_H

#include "base/conf.h"
#include "base/name_key.h"

struct dkim_rows {
	char domain[NAME_KEY_DOMAIN]; /* that they sign as */
	int n;
	struct dkim_row {
		char *selector, *file;
	} row[CONF_DKIM_MAX];
};

const char *dkim_rows_parse(const char *value, struct dkim_rows *, struct buf *why);
/* NULL: good. Else where it is not, and why. The domain is left as it is. */

void dkim_rows_fini(struct dkim_rows *);

bool dkim_rows_find(const struct tables *, const char *domain, struct dkim_rows *);
/* For a domain, which is in lower case and ASCII: its own; else those of the nearest ".parent". False:
 * there are none. */

void dkim_rows_names(const struct dkim_rows *, struct buf *to); /* as conf_dkim_names() */

bool dkim_rows_signs(const struct conf *); /* may any mail be signed, by a section or a row? */

#endif
