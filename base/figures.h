/* figures.h - how often each of a few things came today and yesterday, by the local date.
 *
 * As text, to be kept over a restart, they are numbers with a blank between them: the day, today's, yesterday's.
 *
 * A clock that was put back takes along what it has counted: that is today's, whatever day today is. One that was put forward by more
 * than a day leaves yesterday without any.
 *
 * Numbers in, numbers out, but for one: times are the queue's, and the date that people see is the system's (date.h).
 *
 * OWNERSHIP  Embedded. All zero: nothing was counted.
 * THREAD     Any.
 * ERRORS     figures_read(): false, and nothing has changed. A figure that would pass 2^32 - 1 stays there.
 * SEE        docs/decisions/0138, 0151.
 */
#ifndef BASE_FIGURES_H
#define BASE_FIGURES_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	FIGURES = 4,
	FIGURES_SLOT_MS = 300000, /* a date changes at multiples of this only, in any zone */
};

struct figures {
	uint32_t today[FIGURES], yesterday[FIGURES];
	int32_t day;   /* today, in days since 1970-01-01, of the local date */
	uint32_t slot; /* since 1970, of FIGURES_SLOT_MS: when the date was last looked at */
};

void figures_turn(struct figures *, int64_t wall_ms);
/* Today is the day of this time, from now on. */

void figures_count(struct figures *, int which, uint32_t n, int64_t wall_ms);
bool figures_any(const struct figures *); /* one is not 0 */

void figures_write(const struct figures *, struct buf *);
bool figures_read(struct figures *, const char **text); /* text: behind them afterwards */

bool figures_number(const char **text, int64_t most, int64_t *);
/* A number of 0 to most, and the blank or the end of line behind it, which stays. What is behind it afterwards is text. */

#endif
