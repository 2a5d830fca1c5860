/* milter_print.h - filters as a table, as JSON, and in full.
 *
 * Rows in, text out.
 *
 * THREAD     Any.
 * ERRORS     None.
 */
#ifndef CMD_TEXT_MILTER_PRINT_H
#define CMD_TEXT_MILTER_PRINT_H

#include "base/buf.h"
#include "base/conf.h"
#include "smtpd/milter/milter_health.h"

struct milter_row {
	const struct conf *conf;
	const struct conf_milter *filter;
	struct milter_health health;
	char *why;	 /* it does not answer; NULL: it does */
	int64_t took_us; /* what the try took */
};

void milter_print_list(struct buf *, const struct milter_row *, int n);
void milter_print_full(struct buf *, const struct milter_row *, int64_t now_ms);
void milter_print_json(struct buf *, const struct milter_row *); /* one line */

#endif
