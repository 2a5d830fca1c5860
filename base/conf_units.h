/* conf_units.h - numbers with units: durations, sizes, rates, feedback.
 *
 * THREAD     Any.
 * ERRORS     False, and the second half of a sentence in why.
 */
#ifndef BASE_CONF_UNITS_H
#define BASE_CONF_UNITS_H

#include "base/conf_rows.h"

bool conf_amount_parse(enum conf_type, const char *text, int64_t *value, struct buf *why);
/* number, duration or size. A duration needs its unit, unless it is 0; a size without is bytes. */

void conf_amount_print(enum conf_type, int64_t value, struct buf *to);

bool conf_rate_parse(const char *text, struct conf_rate *, struct buf *why);
bool conf_feedback_parse(const char *text, struct conf_feedback *, struct buf *why);
void conf_rate_print(const struct conf_rate *, struct buf *to);		/* in quotes */
void conf_feedback_print(const struct conf_feedback *, struct buf *to); /* in quotes */

#endif
