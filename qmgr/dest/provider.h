/* provider.h - a receiver whose hosts serve many domains: what holds for all its sites together.
 *
 *	site_set_hosts() --> provider_join(): the provider that all hosts of the best preference have
 *
 *	a limit of it holds --> provider_wait_for_...(): the sites that wait for it, in line
 *	a connection of it is closed, or its rate or its pace lets the next begin --> the first in line look
 *
 * A provider may have thousands of sites. So they do not all look whenever one of them may begin: for a connection
 * one looks, and passes on what it makes no use of; for the rate and the pace a few, every millisecond, as long as these
 * let somebody begin.
 *
 * After a refusal few connections to it are opened at once, and where it is asked, one: whoever waits for that stands in line
 * for a connection.
 *
 * The limits are those of this node.
 *
 * OWNERSHIP  destdb's table; collected when no site has it, and no delivery began lately. A site refers to it.
 * THREAD     qmgr.
 * ERRORS     None.
 */
#ifndef QMGR_DEST_PROVIDER_H
#define QMGR_DEST_PROVIDER_H

#include "base/delivery.h"
#include "base/metrics.h"
#include "qmgr/dest/destdb.h"
#include "qmgr/dest/site.h"
#include "qmgr/dest/site_pace.h"
#include "qmgr/sched/pace.h"

struct provider {
	char *key; /* its name; where connections come from a source, NAME@SOURCE: what it learns is of that alone */
	char *name; /* in the section: of those of all sources the same */
	struct destdb *db;
	const struct conf_provider
		*settings; /* of the configuration in force; NULL: it has none now */
	int sites;
	int connections, connecting, slow, ending, lingering; /* of them all: as in struct site */
	struct site_pace pacing; /* what its hosts let through, of sites that want a pace */
	struct pace pace;	 /* rate */
	struct source_bar bar;	 /* its hosts want nothing from the source */
	struct list for_connection, for_rate; /* struct site: held back by it */
	struct timer wake;		      /* while some wait for the rate */
	struct metric_cell *outcome[VERDICT_CLASSES], *refusals, *of_connections, *of_pace;
	UT_hash_handle hh;
};

/* Where a provider may be NULL, none is known, and nothing is limited. */

void provider_join(struct site *);
/* As its hosts are now, and the configuration: the site is counted there. */

void provider_leave(struct site *); /* its end */

void provider_configure(struct destdb *);
/* Another configuration is in force: all sites join as it has it. */

bool provider_known(const struct destdb *, const char *name);
/* The provider has sites, or a section. */

void provider_forget_pace(struct destdb *, const char *name);
/* Also where no site has it now. */

void provider_collect(struct destdb *);
void provider_free_all(struct destdb *); /* no site is left */

bool provider_full(const struct provider *); /* its connection_limit is reached */
int64_t provider_due_ms(const struct provider *);
/* Steady clock: its rate lets the next delivery begin; what is past is no pause. */

bool provider_paused(const struct provider *);
void provider_count_delivery(struct provider *); /* one begins */

void provider_wait_for_connection(struct site *); /* in line, where it is not already */
void provider_wait_for_rate(struct site *);
void provider_wait_no_more(struct site *);

bool provider_opening_full(const struct provider *);
/* As many connections are being opened as may be, after a refusal. */

void provider_feed_rate(struct provider *);
/* Its pace may let the next begin, for what was under way has come home. */

void provider_feed(struct provider *);
/* There may be room for a connection: the first in line looks. */

void provider_opened(struct provider *);
/* One that was being opened is ready, or slow: the same, where that is what they wait for. */

void provider_count_verdicts(struct provider *, const struct delivery *);
void provider_count_refusal(struct provider *);
void provider_measure(const struct destdb *);
/* For /metrics. */

void provider_offer_idle(struct provider *);
/* One of its connections is idle: the first in line looks, and may end it. */

void provider_offer_busy(struct provider *);
/* One of its connections has had its turn, or is stalled: the first in line without any looks, and may end it. */

bool provider_ending(const struct provider *); /* one of its connections is about to end */

void provider_wait_first(struct site *); /* for what ends for it */

#endif
