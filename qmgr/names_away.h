/* names_away.h - notices that the DNS was away and is back, and has the mail come back that nothing else has put off.
 *
 *	a look-up has no answer --> names_away_failed()   --> a next hop more that may be due to the DNS as a whole
 *	a server has answered   --> names_away_answered() --> the DNS was away: what is parked for it is due
 *
 * Mail of which nothing but look-ups failed is parked under a number of its own (SPOOL_SITE_NAMES), as that of a site that is out is
 * under the site's. The DNS was away where, without an answer to anybody in between, it failed for three next hops that had been
 * found before, or for the very one that is found now; or for any, and nobody had answered since the start. The name servers of one
 * domain that are silent are none of that, and mail comes back so once in NAMES_AWAY_EVERY_MS: where it is no outage after all it is
 * tried no more often than mail for a host.
 *
 * What the cache answers says nothing of name servers, and is not told here.
 *
 * OWNERSHIP  Embedded in struct qmgr. A note to the spool comes back, and is taken by names_away_called_back().
 * THREAD     qmgr.
 * ERRORS     None.
 * SEE        spool.h, struct spool_unpark; retry.h; decision 0226.
 */
#ifndef QMGR_NAMES_AWAY_H
#define QMGR_NAMES_AWAY_H

#include "base/timer.h"
#include "qmgr/dest/edges.h"

#include <stdbool.h>
#include <stdint.h>

enum { NAMES_AWAY_HOPS = 3, NAMES_AWAY_EVERY_MS = 300000 };

struct spool_unpark;

struct names_away {
	struct loop *loop;
	const struct qmgr_edges *edges;
	uint64_t failed[NAMES_AWAY_HOPS]; /* next hops, since a server was heard last; each once */
	int nfailed;
	bool heard;	   /* a server has answered since the start */
	int64_t called_ms; /* steady clock: mail was called back last; 0: never */
	struct timer again;
};

void names_away_init(struct names_away *, struct loop *, const struct qmgr_edges *);
void names_away_fini(struct names_away *);

void names_away_failed(struct names_away *, uint64_t hop, bool found_before);
/* No server had an answer for the next hop, whose hosts have been found before. */

void names_away_answered(struct names_away *, uint64_t hop);
/* A server had: whatever it was. */

void names_away_called_back(struct spool_unpark *);

#endif
