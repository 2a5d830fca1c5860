/* SPDX-License-Identifier: ISC */
#include "qmgr/dest/congestion.h"

#include "base/log.h"
#include "qmgr/dest/ladder.h"
#include "qmgr/sched/job.h"

enum { WARN_AGAIN_MS = 300000 };

/* The strategies of POSTFIX QSHAPE_README, by what holds the mail back. */
static const char *advice(enum constraint c)
{
	switch (c) {
	case CONSTRAINT_DEAD:
	case CONSTRAINT_OUT:
	case CONSTRAINT_SILENT:
		return "the destination is down: sluice dest suspend, or a transport of its own";
	case CONSTRAINT_SUSPENDED:
		return "the operator has suspended it: sluice dest resume";
	case CONSTRAINT_RATE:
	case CONSTRAINT_RATE_DELAY:
		return "its rate is limited here: destination_rate, destination_rate_delay, or a "
		       "transport of its own";
	case CONSTRAINT_WINDOW:
		return "its window is full: if the destination takes more, a larger "
		       "destination_concurrency_limit; else a transport of its own";
	case CONSTRAINT_CONNECTION_LIMIT:
	case CONSTRAINT_UNREADY_LIMIT:
		return "the transport has all its connections: a larger connection_limit, or a "
		       "transport of its own for slow destinations";
	case CONSTRAINT_HOST_CONNECTION_LIMIT:
		return "a limit of ours holds it back: a larger host_connection_limit";
	case CONSTRAINT_HOST_PAUSE:
		return "its hosts take no more connections: a transport of its own keeps it from "
		       "holding up others";
	default:
		return "a transport of its own keeps it from holding up others";
	}
}

static const struct site *largest(const struct destdb *db)
{
	const struct site *most = NULL;
	for (const struct site *s = db->sites; s; s = s->hh.next)
		if (!most || s->queue.waiting > most->queue.waiting)
			most = s;
	return most;
}

static enum constraint constraint_of(const struct site *s)
{
	const struct list *first = list_first(&s->queue.peers);
	return first ? ladder_of(s, list_entry(first, struct peer, in_queue)).constraint
		     : CONSTRAINT_IDLE;
}

void congestion_look(struct destdb *db)
{
	int64_t active = db->sched->nactive, limit = db->sched->conf->queue.message_active_limit;
	int64_t now_ms = destdb_now_ms(db);
	bool warned = db->congested_ms > 0 && now_ms < db->congested_ms + WARN_AGAIN_MS;
	if (10 * active < 8 * limit || warned)
		return;
	db->congested_ms = now_ms;
	const struct site *s = largest(db);
	bool one = s && 2 * s->queue.waiting > active;
	enum constraint c = one ? constraint_of(s) : CONSTRAINT_IDLE;
	log_event(LOG_LEVEL_WARNING, "congestion", "active", log_number(active), "limit",
		  log_number(limit), "site", one ? s->name : NULL, "waiting",
		  one ? log_number(s->queue.waiting) : NULL, "constraint",
		  one ? constraint_name(c) : NULL, "reason",
		  one ? advice(c)
		      : "the active queue is nearly full with mail for many destinations: "
			"sluice shape active shows which; a larger message_active_limit",
		  NULL);
}
