/* SPDX-License-Identifier: ISC */
#include "qmgr/indoubt.h"

#include "qmgr/conn.h"
#include "qmgr/message.h"

#include <string.h>

static struct verdict *final_verdict(const struct recipient *r, enum in_doubt_action action)
{
	const struct verdict *last = r->last;
	if (action == IN_DOUBT_DELIVERED)
		return verdict_printf(VERDICT_SENT, 0, "2.0.0", last->host,
				      "taken as delivered: sent as a whole %d times, and never "
				      "answered; %s",
				      r->doubts, last->text);
	return verdict_printf(VERDICT_FAILED, 0, "5.4.2", last->host,
			      "the message may have arrived: it was sent as a whole %d times, and "
			      "never answered. Last attempt: %s",
			      r->doubts, last->text);
}

bool indoubt_judge(struct message *m, uint32_t recipient, const struct outcome_context *context)
{
	const struct conf_queue *limits = &m->qmgr->conf->queue;
	struct recipient *r = &m->envelope->rcpt[recipient];
	if (r->doubts < RECIPIENT_DOUBTS_MAX)
		r->doubts++;
	if (r->doubts <= limits->in_doubt_retries)
		return false;
	struct outcome_context unsure = *context;
	unsure.dsn_passed_on = false; /* nobody knows what the host will confirm */
	struct verdict *v = final_verdict(r, (enum in_doubt_action)limits->in_doubt_action);
	r->tries--; /* this verdict is no attempt of its own */
	outcome_apply(m, recipient, v, &unsure);
	verdict_unref(v);
	return true;
}

/* The host of the last attempt, if it is one of the site's and in service. */
static struct site_host *first_choice(const struct site *s, const struct entry *e)
{
	const struct envelope *env = e->peer->job->message->envelope;
	const struct verdict *last = env->rcpt[e->recipient[0]].last;
	for (int i = 0; last && i < s->nhost; i++) {
		struct site_host *it = &s->hosts[i];
		if (strcmp(it->peer, last->host) == 0)
			return !host_answers(it->host) || site_host_out(it) ? NULL : it;
	}
	return NULL;
}

static bool has_room(const struct site *s, const struct host *h)
{
	return host_has_room(h, s->transport->settings->host_connection_limit,
			     scheduler_now_ms(s->qmgr));
}

/* A connection to it is under way, or could be. */
static bool worth_waiting_for(const struct site *s, const struct host *h)
{
	if (s->connecting > 0 && h->connections > h->ready)
		return true;
	return has_room(s, h) && s->connections < site_limit(s) && !transport_full(s->transport);
}

struct conn *indoubt_place(const struct site *s, const struct entry *e)
{
	const struct site_host *first = first_choice(s, e);
	struct conn *other = NULL;
	list_each (link, tmp, &s->open) {
		struct conn *c = list_entry(link, struct conn, in_site);
		if (c->busy > 0)
			continue;
		if (!first || c->host == first->host)
			return c;
		if (!other)
			other = c;
	}
	return other && !worth_waiting_for(s, first->host) ? other : NULL;
}

struct site_host *indoubt_host_to_open(const struct site *s, const struct entry *e)
{
	struct site_host *it = e->alone ? first_choice(s, e) : NULL;
	return it && has_room(s, it->host) ? it : NULL;
}
