/* sink_mood.h - the moods of a host, as `sluice sink` is told to have them: greylisting, and a rate.
 *
 * OWNERSHIP  The server's: sink_mood_fini().
 * THREAD     Main.
 * ERRORS     Above SINK_PAIRS_MAX pairs a new one is not put off, since it would not be known again.
 * SEE        RFC 6647 (greylisting); base/gcra.h.
 */
#ifndef CMD_SINK_SINK_MOOD_H
#define CMD_SINK_SINK_MOOD_H

#include "base/gcra.h"

enum { SINK_PAIRS_MAX = 1000000 };

struct sink_mood {
	struct sink_pair *pairs; /* sender and recipient that were seen */
	int64_t npairs;
	struct gcra rate;
};

int64_t sink_mood_grey_ms(struct sink_mood *, int64_t greylist_ms, const char *from, const char *to,
			  int64_t now_ms);
/* How long this pair must wait still; 0: it may pass. Up to a tab of each counts, in any case. */

bool sink_mood_beyond(struct sink_mood *, const struct conf_rate *, int64_t now_us);
/* Is this one more than the rate allows? Else it is counted. */

void sink_mood_fini(struct sink_mood *);

#endif
