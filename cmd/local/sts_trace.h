/* sts_trace.h - the MTA-STS policy of a domain, looked up now.
 *
 * The same thread as in the relay, with the policies that the relay has kept, where they may be read.
 *
 * OWNERSHIP  The answer is the caller's to sts_ask_free().
 * THREAD     Main; it blocks, no longer than a look may take.
 * ERRORS     In the answer.
 */
#ifndef CMD_LOCAL_STS_TRACE_H
#define CMD_LOCAL_STS_TRACE_H

#include "base/conf.h"
#include "base/sts_ask.h"

struct sts_ask *sts_trace(struct conf *, const char *domain);

void sts_trace_print(struct buf *, const struct sts_ask *);
void sts_trace_json(struct buf *, const struct sts_ask *); /* "mta_sts":{...}, */

#endif
