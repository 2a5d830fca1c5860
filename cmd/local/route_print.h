/* route_print.h - a trace as text, or as JSON: one object for each recipient.
 *
 * THREAD     Main.
 */
#ifndef CMD_LOCAL_ROUTE_PRINT_H
#define CMD_LOCAL_ROUTE_PRINT_H

#include "cmd/local/route_trace.h"

void route_print_text(struct buf *, const struct route_trace *, const char *sender,
		      const char *address);
void route_print_json(struct buf *, const struct route_trace *, const char *sender,
		      const char *address);

void route_print_security(struct buf *,
			  enum resolve_security); /* nothing where nothing was validated */

#endif
