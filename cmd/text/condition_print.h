/* condition_print.h - conditions as people and programs read them.
 *
 *	filter_away rspamd, for 3 min: mail that ... is refused for now, with 451 (connection refused). Start ...
 *
 * A look in, text out.
 *
 * THREAD     Any.
 * ERRORS     None.
 * SEE        base/condition.h.
 */
#ifndef CMD_TEXT_CONDITION_PRINT_H
#define CMD_TEXT_CONDITION_PRINT_H

#include "base/buf.h"
#include "base/condition.h"

void condition_print_line(struct buf *, const struct condition_row *, int64_t now_ms);
/* Without its end. */

void condition_print_array(struct buf *, const struct conditions *);
/* "conditions":[...], and a comma. */

#endif
