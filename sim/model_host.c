/* SPDX-License-Identifier: ISC */
#include "sim/model_host.h"

#include "base/mem.h"
#include "sim/calendar.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct model_hosts {
	int n;
	struct model_host host[];
};

static void make_buckets(struct model_hosts *hosts, int i)
{
	struct model_host *h = &hosts->host[i];
	const char *name = h->is->bucket_of;
	bucket_init(&h->connections, &h->is->connections, 0, false);
	h->bucket_at = h;
	for (int k = 0; k < i && *name; k++)
		if (strcmp(hosts->host[k].is->bucket_of, name) == 0) {
			h->bucket_at = hosts->host[k].bucket_at;
			return;
		}
}

struct model_hosts *model_hosts_new(struct world *w)
{
	int n = w->scenario->nhost;
	struct model_hosts *hosts = mem_zalloc(sizeof *hosts + (size_t)n * sizeof hosts->host[0]);
	hosts->n = n;
	for (int i = 0; i < n; i++) {
		struct model_host *h = &hosts->host[i];
		h->world = w;
		h->is = &w->scenario->host[i];
		dice_init(&h->dice, w->seed, h->is->title);
		list_init(&h->waiting);
		make_buckets(hosts, i);
	}
	return hosts;
}

void model_hosts_free(struct model_hosts **hosts)
{
	for (int i = 0; i < (*hosts)->n; i++) {
		free((*hosts)->host[i].key);
		free((*hosts)->host[i].bucket);
	}
	free(*hosts);
	*hosts = NULL;
}

int model_host_count(const struct world *w)
{
	return w->hosts->n;
}

struct model_host *model_host_number(struct world *w, int i)
{
	assert(i >= 0 && i < w->hosts->n);
	return &w->hosts->host[i];
}

static bool same_address(const union address *a, const union address *b)
{
	if (a->sa.sa_family != b->sa.sa_family)
		return false;
	if (a->sa.sa_family == AF_INET)
		return a->in.sin_addr.s_addr == b->in.sin_addr.s_addr;
	return memcmp(&a->in6.sin6_addr, &b->in6.sin6_addr, sizeof a->in6.sin6_addr) == 0;
}

struct model_host *model_host_at(struct world *w, const union address *address)
{
	for (int i = 0; i < w->hosts->n; i++)
		if (same_address(&w->hosts->host[i].is->address, address))
			return &w->hosts->host[i];
	return NULL;
}

static bool is_out(const struct model_host *h)
{
	return calendar_out(h->is, h->world->now_us / 1000);
}

static bool is_blocked(const struct model_host *h, const char *source)
{
	return calendar_blocked(h->is, source, h->world->now_us / 1000);
}

static int64_t noisy_us(struct model_host *h, int64_t ms)
{
	return dice_noisy(&h->dice, stage_us(ms), h->is->noise_part);
}

static void wait_until(struct attempt *a, int64_t at_us)
{
	world_after(a->host->world, &a->timer, at_us - a->host->world->now_us);
}

static void end_attempt(struct attempt *a, int cause)
{
	if (cause != CAUSE_NONE)
		attempt_close(a);
	a->ended(a->owner, cause);
}

static bool has_room(const struct model_host *h)
{
	int64_t limit = calendar_limit(h->is, h->world->now_us / 1000);
	return limit == 0 || h->serving < limit;
}

static void serve_attempt(struct attempt *a)
{
	assert(a->state == ATTEMPT_CONNECTING || a->state == ATTEMPT_KNOCKING ||
	       a->state == ATTEMPT_WAITING);
	int64_t greeting_us = noisy_us(a->host, a->host->is->greeting);
	a->host->serving++;
	a->state = ATTEMPT_GREETED;
	if (greeting_us > a->greeting_timeout_us) {
		a->fate = CAUSE_GREETING_TIMEOUT;
		greeting_us = a->greeting_timeout_us;
	}
	world_after(a->host->world, &a->timer, greeting_us);
}

static void wait_in_backlog(struct attempt *a)
{
	a->state = ATTEMPT_WAITING;
	a->host->nwaiting++;
	list_append(&a->host->waiting, &a->in_waiting);
	wait_until(a, a->host->world->now_us + a->greeting_timeout_us);
}

/* Nothing answers, or nothing more: it tries again after a gap that doubles, until it is too
 * late. */
static void knock_later(struct attempt *a)
{
	int64_t again_us = a->host->world->now_us + a->gap_us;
	a->state = ATTEMPT_KNOCKING;
	if (a->gap_us == 0 || again_us > a->deadline_us)
		again_us = a->deadline_us;
	a->gap_us *= 2;
	wait_until(a, again_us);
}

static void turn_away(struct attempt *a, enum cause why)
{
	a->fate = (int)why;
	a->host->turned_away += why == CAUSE_TOO_MANY;
	world_after(a->host->world, &a->timer, noisy_us(a->host, a->host->is->greeting));
}

static void treat_beyond_room(struct attempt *a)
{
	struct model_host *h = a->host;
	if (h->is->beyond == BEYOND_421) {
		turn_away(a, CAUSE_TOO_MANY);
		return;
	}
	if (a->state == ATTEMPT_CONNECTING && h->is->beyond == BEYOND_MUTE)
		a->deadline_us = h->world->now_us + a->greeting_timeout_us;
	knock_later(a);
}

static void arrive_at_host(struct attempt *a)
{
	struct model_host *h = a->host;
	if (is_out(h) && h->is->outage == OUTAGE_421)
		turn_away(a, CAUSE_TOO_MANY);
	else if (h->is->block == BLOCK_554 && is_blocked(h, a->source))
		turn_away(a, CAUSE_BLOCKED);
	else if (a->state == ATTEMPT_CONNECTING && !bucket_take(&h->connections, h->world->now_us))
		turn_away(a, CAUSE_TOO_MANY);
	else if (has_room(h) && list_empty(&h->waiting))
		serve_attempt(a);
	else if (h->nwaiting < h->is->backlog)
		wait_in_backlog(a);
	else
		treat_beyond_room(a);
}

static int too_late(const struct attempt *a)
{
	bool mute = a->host->is->beyond == BEYOND_MUTE && a->state == ATTEMPT_KNOCKING;
	return mute || a->state == ATTEMPT_WAITING ? CAUSE_GREETING_TIMEOUT : CAUSE_CONNECT_TIMEOUT;
}

static void end_greeting(struct attempt *a)
{
	const struct model_host *h = a->host;
	bool silent = h->is->outage == OUTAGE_SILENT;
	int64_t next_ms = calendar_next_outage_ms(h->is, h->world->now_us / 1000);
	if (is_out(h) && !silent) {
		end_attempt(a, CAUSE_LOST);
		return;
	}
	a->state = ATTEMPT_READY;
	if (next_ms != INT64_MAX && !silent)
		wait_until(a, stage_us(next_ms));
	end_attempt(a, CAUSE_NONE);
}

static void on_timer(void *owner)
{
	assert(((struct attempt *)owner)->state != ATTEMPT_NONE);
	struct attempt *a = owner;
	bool late = a->host->world->now_us >= a->deadline_us;
	if (a->fate != CAUSE_NONE) {
		end_attempt(a, a->fate);
	} else if (a->state == ATTEMPT_READY) {
		if (a->lost)
			a->lost(a);
	} else if (a->state == ATTEMPT_GREETED) {
		end_greeting(a);
	} else if (a->state == ATTEMPT_WAITING || (a->state == ATTEMPT_KNOCKING && late)) {
		end_attempt(a, too_late(a));
	} else {
		arrive_at_host(a);
	}
}

/* The fate of a connection, settled before a packet is sent. */
static int fate_of(struct model_host *h)
{
	if (is_out(h) && h->is->outage != OUTAGE_421)
		return h->is->outage == OUTAGE_REFUSED ? CAUSE_REFUSED : CAUSE_CONNECT_TIMEOUT;
	return dice_happens(&h->dice, h->is->refused_part) ? CAUSE_REFUSED : CAUSE_NONE;
}

void attempt_start(struct attempt *a, struct model_host *h, const struct conf_transport *t)
{
	assert(a->state == ATTEMPT_NONE && a->ended);
	int64_t connect_us = noisy_us(h, h->is->connect), most_us = stage_us(t->connect_timeout);
	a->host = h;
	a->state = ATTEMPT_CONNECTING;
	a->fate = fate_of(h);
	a->began_us = h->world->now_us;
	h->limit = t->host_connection_limit;
	h->own = t != &h->world->scenario->conf->transport[0];
	h->open++;
	if (h->open > h->open_most)
		h->open_most = h->open;
	h->tried_out += is_out(h);
	a->deadline_us = a->began_us + most_us;
	a->gap_us = stage_us(h->is->retransmit);
	a->greeting_timeout_us = stage_us(t->greeting_timeout);
	timer_init(&a->timer, on_timer, a);
	list_init(&a->in_waiting);
	if (a->fate == CAUSE_CONNECT_TIMEOUT || connect_us > most_us) {
		a->fate = CAUSE_CONNECT_TIMEOUT;
		connect_us = most_us;
	}
	world_after(h->world, &a->timer, connect_us);
}

/* Who has waited longest is served. */
static void serve_next(struct model_host *h)
{
	struct list *first = list_first(&h->waiting);
	if (!first || !has_room(h))
		return;
	list_remove(first);
	assert(h->nwaiting > 0);
	h->nwaiting--;
	serve_attempt(list_entry(first, struct attempt, in_waiting));
}

void attempt_close(struct attempt *a)
{
	struct model_host *h = a->host;
	if (a->state == ATTEMPT_NONE)
		return;
	timer_stop(&h->world->events, &a->timer);
	h->serving -= a->state == ATTEMPT_GREETED || a->state == ATTEMPT_READY;
	h->nwaiting -= a->state == ATTEMPT_WAITING;
	assert(h->serving >= 0 && h->nwaiting >= 0);
	assert(h->open > 0);
	h->open--;
	list_remove(&a->in_waiting);
	a->state = ATTEMPT_NONE;
	serve_next(h);
}

bool attempt_stands(const struct attempt *a)
{
	bool mute = a->state == ATTEMPT_KNOCKING && a->host->is->beyond == BEYOND_MUTE;
	return mute || a->state >= ATTEMPT_GREETED || a->state == ATTEMPT_WAITING ||
	       a->fate == CAUSE_TOO_MANY;
}

int64_t host_transaction_us(struct model_host *h, uint32_t nrcpt, uint64_t size, double way)
{
	int64_t us = noisy_us(h, h->is->transaction + h->is->recipient * nrcpt);
	if (way > 0)
		us += (int64_t)(way * (double)noisy_us(h, h->is->round_trip));
	if (h->is->bandwidth > 0)
		us += (int64_t)((double)size * 1e6 / (double)h->is->bandwidth);
	return us;
}

bool host_breaks(struct model_host *h)
{
	return is_out(h) || dice_happens(&h->dice, h->is->broken_part);
}

/* The reply to MAIL of a host that wants nothing from an address of ours. */
static struct verdict *blocked_verdict(const struct model_host *h, const char *source)
{
	bool later = h->is->block == BLOCK_450;
	char *text = mem_printf("service unavailable, client host [%s] is on our list", source);
	struct verdict *v =
		verdict_answering(VERDICT_AT_MAIL, later ? VERDICT_DEFERRED : VERDICT_FAILED,
				  later ? 450 : 550, later ? "4.7.1" : "5.7.1", h->is->title, text);
	free(text);
	return v;
}

/* Full, where it is the first time. */
static struct bucket *bucket_for(struct model_host *h, const char *source)
{
	struct model_host *at = h->bucket_at;
	const char *name = source && at->is->bucket_by == BUCKET_BY_SOURCE ? source : "";
	for (int i = 0; i < at->nbucket; i++)
		if (strcmp(at->bucket[i].source, name) == 0)
			return &at->bucket[i].bucket;
	at->bucket = mem_realloc(at->bucket, ((size_t)at->nbucket + 1) * sizeof *at->bucket);
	struct source_bucket *b = &at->bucket[at->nbucket++];
	snprintf(b->source, sizeof b->source, "%s", name);
	bucket_init(&b->bucket, &at->is->bucket, at->is->bucket_room,
		    at->is->bucket_filled == FILLED_AT_ONCE);
	return &b->bucket;
}

struct verdict *host_verdict(struct model_host *h, const char *source, int64_t age_ms)
{
	double at = dice_part(&h->dice);
	if (h->is->block != BLOCK_554 && is_blocked(h, source))
		return blocked_verdict(h, source);
	if (age_ms < h->is->greylisting)
		return verdict_answering(VERDICT_AT_RCPT, VERDICT_DEFERRED, 451, "4.7.1",
					 h->is->title, "greylisted, try again later");
	if (!bucket_take(bucket_for(h, source), h->world->now_us))
		return verdict_answering(VERDICT_AT_END, VERDICT_DEFERRED, 451, "4.7.28",
					 h->is->title, "rate limited, try again later");
	if (at < h->is->deferred_part)
		return cause_verdict(CAUSE_REPLY, VERDICT_DEFERRED, h->is->title);
	if (at < h->is->deferred_part + h->is->failed_part)
		return verdict_answering(VERDICT_AT_RCPT, VERDICT_FAILED, 550, "5.1.1",
					 h->is->title, "no such user");
	return verdict_new(VERDICT_SENT, 250, "2.0.0", h->is->title, "taken");
}
