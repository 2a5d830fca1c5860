/* fence.h - until when this node may take mail and deliver it.
 *
 * Of several machines that copy their queues to each other's engine, one that is silent for too long is adopted by
 * another (replica/node.h). So a node must know that it has not been, before each thing that must not be done by
 * two: to say 250, to begin a delivery, to send the end of a message. What it knows is a time: until then
 * no other begins. It is compared here, with nothing in between, so that a process that was stopped for an hour
 * and goes on in the middle of a function finds the fence closed as well.
 *
 * The clock is that which goes on while the machine sleeps (clock_up_ms()). One machine alone has no fence:
 * it is open for ever.
 *
 * THREAD     Any.
 * ERRORS     None.
 */
#ifndef BASE_FENCE_H
#define BASE_FENCE_H

#include <stdbool.h>
#include <stdint.h>

#define FENCE_NEVER INT64_MAX

void fence_set(int64_t until_up_ms); /* FENCE_NEVER: it does not close by itself; 0: it is closed */
bool fence_open(void);

#endif
