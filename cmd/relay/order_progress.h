/* order_progress.h - up to which of the orders for all nodes this node has carried them out, for the file `cluster`.
 *
 * The cluster says so when it has passed them on. A crash must not come between that and what they change: so it is noted
 * when all that were passed on by then are carried out, and what they have changed is in its own files. Until then a start
 * carries them out once more.
 *
 * OWNERSHIP  Embedded; order_progress_fini() ends it.
 * THREAD     Main.
 * ERRORS     None.
 * SEE        cluster/orders.h, cmd/watch/kept_text.h.
 */
#ifndef CMD_RELAY_ORDER_PROGRESS_H
#define CMD_RELAY_ORDER_PROGRESS_H

#include <stdbool.h>

struct order_progress {
	int under_way; /* passed on, and not answered */
	char *text;    /* to be noted; or NULL */
};

void order_progress_begun(struct order_progress *); /* an order is passed on, */
void order_progress_ended(struct order_progress *); /* and was carried out */
void order_progress_said(struct order_progress *, const char *text);
/* Behind all that it is about. */

char *order_progress_take(struct order_progress *, bool kept);
/* To be noted now, and freed; NULL: nothing. kept: what orders change is in its files. */

void order_progress_fini(struct order_progress *);

#endif
