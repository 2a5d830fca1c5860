/* flow_tell.h - the flows of a node, as a text for the node that asks.
 *
 *	"NAME<TAB>messages=3<TAB>sent=17<TAB>..."	a line for each flow; what is 0 is left out
 *	"<TAB>sending=4<TAB>left=0"			at the end: of all flows; flows that had no room
 *
 * A field that is not known is passed over, so that other versions understand each other.
 *
 * OWNERSHIP  A row that was read is the caller's: flow_told_fini().
 * THREAD     Any. Pure.
 * ERRORS     What makes no sense is no row.
 * SEE        cluster/inquiry.h.
 */
#ifndef CMD_TEXT_FLOW_TELL_H
#define CMD_TEXT_FLOW_TELL_H

#include "base/buf.h"
#include "qmgr/flow_command.h"

void flow_tell(struct buf *to, struct flow_command *, size_t most);
/* At most so many bytes, the busiest first: it sorts them. */

/* A line of it. */
struct flow_told {
	struct flow_row row; /* no name: the last line */
	int64_t left;
};

bool flow_told_read(struct flow_told *, char *line); /* writes into the line */
void flow_told_fini(struct flow_told *);

void flow_told_add(struct flow_row *sum, const struct flow_row *);
/* Figures are added; of times the earliest or the latest counts, and of settings those that came first. */

#endif
