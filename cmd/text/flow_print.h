/* flow_print.h - flows as lines, in full, and as JSON.
 *
 * THREAD     Any.
 * ERRORS     None.
 * SEE        sluice(8), "Flows".
 */
#ifndef CMD_TEXT_FLOW_PRINT_H
#define CMD_TEXT_FLOW_PRINT_H

#include "base/buf.h"
#include "qmgr/flow_command.h"

void flow_print_sort(struct flow_command *);
/* Suspended ones first, then by how much is being worked on. */

void flow_print_figures(struct buf *, const struct flow_row *, int64_t sending, int64_t now_ms);
/* " weight=1 messages=..." sending: of all flows. */

void flow_print_members(struct buf *, const struct flow_row *, int64_t sending);
/* Of its object, as json_put.h has them. */

void flow_print_list(struct buf *, const struct flow_command *, int64_t now_ms);
void flow_print_full(struct buf *, const struct flow_command *, int64_t now_ms);
void flow_print_json(struct buf *, const struct flow_command *);
void flow_print_done(struct buf *, const struct flow_command *); /* of an order */

#endif
