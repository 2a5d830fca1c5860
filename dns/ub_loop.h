/* ub_loop.h - libunbound's events on our loop.
 *
 * libunbound asks for its sockets and time-outs to be watched by a table of functions; here they are
 * watchers of libev. So it has no thread and no loop of its own.
 *
 * OWNERSHIP  The base must outlive the context that was made on it: ub_ctx_delete(), then
 *            ub_loop_free().
 * THREAD     The loop's.
 * ERRORS     None.
 * SEE        unbound-event.h.
 */
#ifndef DNS_UB_LOOP_H
#define DNS_UB_LOOP_H

#include "base/loop.h"

struct ub_event_base;
struct ub_loop;

struct ub_loop *ub_loop_new(struct loop *);
void ub_loop_free(struct ub_loop **);

struct ub_event_base *ub_loop_base(struct ub_loop *);

#endif
