/* budget.h - the memory that all sessions together spend on what their clients send.
 *
 * Each session by itself is bounded: so many recipients, so much content before it goes to a file.
 * Ten thousand of them are not. So what transactions hold is counted, for all workers in one number;
 * above session_memory_limit nothing more is begun (452 4.3.1), and content that is under way goes
 * to files at once. What a session costs besides, buffers of the stream and of TLS, is bounded by
 * connection_limit.
 *
 * THREAD     Any; the number is atomic. It may be exceeded by what the workers are just reading.
 * ERRORS     None.
 */
#ifndef STAGES_BUDGET_H
#define STAGES_BUDGET_H

#include "base/conf.h"

void budget_charge(size_t *charged, size_t bytes);
/* One holds so many now; *charged is what was counted for it so far, at first 0. */

bool budget_spent(const struct conf *);

#endif
