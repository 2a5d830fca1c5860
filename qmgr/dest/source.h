/* source.h - an address of ours that connections come from: what holds for all sites that mail goes to from it.
 *
 * A transport or a flow that names sources has for each of them sites and hosts of their own: the key of a site ends with " from=NAME",
 * that of a host has the address. So whatever is learnt, limited or shared there is by source, and where none is named
 * nothing is different.
 *
 *	refused at a site	its hosts say that they want nothing from our address: for a while other sources are chosen for what would go
 *				there, and what waits there moves to them (destdb_thread.move). At a provider: at all its sites.
 *	missing			this machine lacks the address: that is no host's fault; likewise at all sites, until it can be bound
 *	rate			deliveries in a time: sites wait in line
 *
 * Where no other source may be had, mail waits, and is tried, as it would without sources.
 *
 * OWNERSHIP  destdb's table; collected when no site has it, and no delivery began lately. A site refers to it.
 * THREAD     qmgr.
 * ERRORS     None.
 * SEE        docs/decisions/0143; route/source_choice.h, which chooses.
 */
#ifndef QMGR_DEST_SOURCE_H
#define QMGR_DEST_SOURCE_H

#include "base/delivery.h"
#include "base/metrics.h"
#include "qmgr/dest/destdb.h"
#include "qmgr/dest/site.h"
#include "qmgr/sched/pace.h"

struct source_missing {
	bool known;	  /* it was logged, and no connection has come from it since */
	int64_t until_ms; /* steady clock: then it is tried again; 0: it is now */
	int64_t wait_ms;
};

struct source {
	char *name;
	struct destdb *db;
	const struct conf_source
		*settings; /* of the configuration in force; NULL: it has none now */
	int sites;
	struct pace pace;		  /* rate */
	struct list for_rate;		  /* struct site: held back by it */
	struct timer wake;		  /* while some wait for the rate */
	struct source_missing missing[2]; /* the address for IPv4, for IPv6 */
	struct timer again;		  /* while one is missing */
	struct metric_cell *outcome[VERDICT_CLASSES], *refusals;
	UT_hash_handle hh;
};

/* Where a source may be NULL, the system chooses, and nothing is limited. */

void source_join(struct site *, const char *name);
/* A new site, before it has hosts; or the same again. name may be NULL. */

void source_leave(struct site *); /* its end */
void source_configure(struct destdb *);
/* Another configuration is in force: what waits may be to move. */

void source_collect(struct destdb *);
void source_free_all(struct destdb *); /* no site is left */

const char *source_name(const struct site *); /* NULL: it has none */

int64_t source_due_ms(const struct source *);
/* Steady clock: its rate lets the next delivery begin; what is past is no pause. */

bool source_paused(const struct source *);
void source_count_delivery(struct source *); /* one begins */
void source_wait_for_rate(struct site *);
void source_wait_no_more(struct site *);

bool source_misses(const struct site *, const struct host *);
/* The address for it is missing, or there is no such source any more. */

struct verdict *source_missing_verdict(const struct site *, const struct host *);

void source_is_missing(struct site *, const struct host *, const struct verdict *why);
/* A connection could not be bound to it. */

void source_is_there(struct site *, const struct host *); /* one stands */

bool source_meant(const struct site *, const struct verdict *);
/* This reply of a host refuses our address, and not the message. */

void source_refused(struct site *, const struct verdict *why); /* with such a reply */
void source_taken(struct site *, const struct delivery *);     /* a message was */

int64_t source_left_ms(const struct site *);
/* Steady clock: it was refused there last, and nothing was taken since; 0: it was not. */

bool source_on_trial(const struct site *);
/* The source was refused there, and nothing was taken since: one message at a time asks. */

void source_forget(struct site *); /* that it was refused */

bool source_shut(const struct site *);
/* The source is refused there, or missing: another is to be chosen, if there is one. */

int64_t source_shut_until_ms(const struct site *); /* steady clock: refused until then; or 0 */

bool source_bar_kept(const struct source_bar *, int64_t now_ms);
/* The source was refused lately, and has been tried again since in vain or not at all. */

bool source_keeps(const struct site *);
/* So it was at this site, which is not to be collected. */

void source_count_verdicts(struct source *, const struct delivery *);

#endif
