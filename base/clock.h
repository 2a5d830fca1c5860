/* clock.h - what time it is.
 *
 * Intervals (time-outs, windows, pipelines) are measured on the steady clock; what is written to
 * disk and log (arrival, next attempt) is wall time. clock.c is an edge: tests link their own, and
 * `sluice sim` sets it. In the relay wall time is the queue's: see clock_watch.h, and date.h.
 *
 * THREAD     Any.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

int64_t clock_steady_ms(void); /* milliseconds since some start; never goes back */
int64_t clock_steady_us(void); /* the same in microseconds */
int64_t clock_wall_ms(void);   /* milliseconds since 1970 */
int64_t clock_wall_us(void);

int64_t clock_system_ms(void); /* the same as the system has it, whoever has set it */
int64_t clock_up_ms(void);     /* since the boot, time asleep included */

void clock_set_wall(int64_t wall_ms);
/* From now on clock_wall_ms() goes on from here with clock_up_ms(), whatever becomes of the system's.
 * Before the first call it is the system's. */

#define CLOCK_SIMULATED_START_US INT64_C(1000000000000000) /* wall time, less steady time */

void clock_stand(int64_t steady_us);
/* From now on both clocks stand still, at this steady time; 0: they go again. Before there is any
 * other thread: for a simulation. */

#endif
