/* SPDX-License-Identifier: ISC */
#include "qmgr/dest/congestion.h"

#include "base/log.h"
#include "base/metrics.h"
#include "qmgr/dest/admission.h"
#include "qmgr/dest/provider.h"

enum { WARN_AGAIN_MS = 300000 };

static const struct site *largest_site(const struct destdb *db)
{
	const struct site *most = NULL;
	for (const struct site *s = db->sites; s; s = s->hh.next)
		if (!most || s->queue.waiting > most->queue.waiting)
			most = s;
	return most;
}

static const char *advice_for_constraint(enum constraint c)
{
	const char *own = constraint_row(c)->advice;
	return own ? own : "a transport of its own keeps it from holding up others";
}

void congestion_look(struct destdb *db)
{
	int64_t active = db->sched->nactive, limit = db->sched->conf->queue.message_active_limit;
	int64_t now_ms = destdb_now_ms(db);
	bool warned = db->congested_ms > 0 && now_ms < db->congested_ms + WARN_AGAIN_MS;
	if (10 * active < 8 * limit || warned)
		return;
	db->congested_ms = now_ms;
	const struct site *s = largest_site(db);
	bool one = s && 2 * s->queue.waiting > active;
	enum constraint c = one ? admission_of_first(s).constraint : CONSTRAINT_IDLE;
	log_event(LOG_LEVEL_WARNING, "congestion", "active", log_number(active), "limit",
		  log_number(limit), "site", one ? s->name : NULL, "waiting",
		  one ? log_number(s->queue.waiting) : NULL, "constraint",
		  one ? constraint_name(c) : NULL, "reason",
		  one ? advice_for_constraint(c)
		      : "the active queue is nearly full with mail for many destinations: "
			"sluice shape active shows which; a larger message_active_limit",
		  NULL);
}

void congestion_count(const struct destdb *db)
{
	provider_measure(db);
	int64_t held[CONSTRAINT_COUNT] = {0};
	for (const struct site *s = db->sites; s; s = s->hh.next)
		if (s->queue.waiting > 0 || s->parked.parked > 0)
			held[admission_of_first(s).constraint]++;
	for (int i = 0; i < CONSTRAINT_COUNT; i++)
		if (site_limits_has((enum constraint)i))
			metric_cell_set(metric_cell(FAMILY_sites_held,
						    constraint_name((enum constraint)i), NULL),
					held[i]);
}
