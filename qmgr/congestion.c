/* SPDX-License-Identifier: ISC */
#include "qmgr/congestion.h"

#include "base/log.h"
#include "qmgr/job.h"
#include "qmgr/ladder.h"
#include "qmgr/message.h"

enum { WARN_AGAIN_MS = 300000 };

/* The strategies of POSTFIX QSHAPE_README, by what holds the mail back. */
static const char *advice(enum explain_constraint c)
{
	switch (c) {
	case EXPLAIN_DEAD:
	case EXPLAIN_OUT:
	case EXPLAIN_SILENT:
		return "the destination is down: sluice dest suspend, or a transport of its own";
	case EXPLAIN_SUSPENDED:
		return "the operator has suspended it: sluice dest resume";
	case EXPLAIN_RATE:
	case EXPLAIN_RATE_DELAY:
		return "its rate is limited here: destination_rate, destination_rate_delay, or a "
		       "transport of its own";
	case EXPLAIN_WINDOW:
		return "its window is full: if the destination takes more, a larger "
		       "destination_concurrency_limit; else a transport of its own";
	case EXPLAIN_CONNECTION_LIMIT:
	case EXPLAIN_UNREADY_LIMIT:
		return "the transport has all its connections: a larger connection_limit, or a "
		       "transport of its own for slow destinations";
	case EXPLAIN_HOST_CONNECTION_LIMIT:
		return "a limit of ours holds it back: a larger host_connection_limit";
	case EXPLAIN_HOST_PAUSE:
		return "its hosts take no more connections: a transport of its own keeps it from "
		       "holding up others";
	default:
		return "a transport of its own keeps it from holding up others";
	}
}

static const struct site *largest(const struct qmgr *q)
{
	const struct site *most = NULL;
	for (const struct site *s = q->sites; s; s = s->hh.next)
		if (!most || s->waiting > most->waiting)
			most = s;
	return most;
}

static enum explain_constraint constraint_of(const struct site *s)
{
	const struct list *first = list_first(&s->peers);
	return first ? ladder_of(s, list_entry(first, struct peer, in_site)).constraint
		     : EXPLAIN_IDLE;
}

void congestion_look(struct qmgr *q)
{
	int64_t active = HASH_COUNT(q->messages), limit = q->conf->queue.message_active_limit;
	int64_t now_ms = scheduler_now_ms(q);
	bool warned = q->congested_ms > 0 && now_ms < q->congested_ms + WARN_AGAIN_MS;
	if (10 * active < 8 * limit || warned)
		return;
	q->congested_ms = now_ms;
	const struct site *s = largest(q);
	bool one = s && 2 * s->waiting > active;
	enum explain_constraint c = one ? constraint_of(s) : EXPLAIN_IDLE;
	log_event(LOG_LEVEL_WARNING, "congestion", "active", log_number(active), "limit",
		  log_number(limit), "site", one ? s->name : NULL, "waiting",
		  one ? log_number(s->waiting) : NULL, "constraint",
		  one ? explain_constraint_name(c) : NULL, "reason",
		  one ? advice(c)
		      : "the active queue is nearly full with mail for many destinations: "
			"sluice shape active shows which; a larger message_active_limit",
		  NULL);
}
