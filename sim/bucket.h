/* bucket.h - what a host lets through in a time: so many at once, and so many more bit by bit, or all of them anew at the
 * end of each such time.
 *
 * Numbers in, numbers out. Times are those of the world, microseconds.
 *
 * OWNERSHIP  Embedded.
 * THREAD     main.
 * ERRORS     None.
 */
#ifndef SIM_BUCKET_H
#define SIM_BUCKET_H

#include "base/conf.h"

struct bucket {
	struct conf_rate rate; /* no events: no limit */
	double room, has;
	bool at_once;
	int64_t filled_us;
};

void bucket_init(struct bucket *, const struct conf_rate *, int64_t room, bool at_once);
/* Full. room: 0 is as many as the rate has. */

bool bucket_take(struct bucket *, int64_t now_us); /* one more; false: it is empty */

int64_t bucket_next_us(const struct bucket *, int64_t now_us);
/* When it has one again, after bucket_take() found none. */

#endif
