/* SPDX-License-Identifier: ISC */
#include "qmgr/dest_command.h"

#include "base/mem.h"
#include "base/stream.h"
#include "qmgr/conn.h"
#include "qmgr/suspend.h"

#include <stdlib.h>

static int64_t left(int64_t until_ms, int64_t now_ms)
{
	return until_ms > now_ms ? until_ms - now_ms : 0;
}

static void copy_host(struct dest_host *to, struct qmgr *q, const struct host *h,
		      uint32_t preference)
{
	char ip[64];
	int64_t now_ms = scheduler_now_ms(q);
	int64_t until_ms = h->retry_ms > h->cool_ms ? h->retry_ms : h->cool_ms;
	*to = (struct dest_host){
		.name = mem_strdup(h->name),
		.address = mem_strdup(address_text(&h->address, ip)),
		.port = address_port(&h->address),
		.preference = preference,
		.state = host_state(h, now_ms),
		.connections = h->connections,
		.ready = h->ready,
		.idle = h->nidle,
		.failures = h->failures,
		.unanswered = h->unanswered,
		.doubts = h->doubts,
		.retry_in_ms = left(until_ms, now_ms),
		.opened_ago_ms = h->opened_ms ? now_ms - h->opened_ms : -1,
		.depth = h->depth,
		.mode = host_mode_name(host_mode(h, now_ms)),
		.mode_in_ms = left(h->mode_until_ms, now_ms),
		.messages_most = host_messages_most(h, now_ms),
		.messages_in_ms = left(h->messages_until_ms, now_ms),
		.slow_in_ms = left(h->slow_until_ms, now_ms),
		.plain_in_ms = left(h->plain_until_ms, now_ms),
		.why = verdict_ref(h->why),
	};
}

static const char *site_state(const struct site *s)
{
	return s->suspended ? "suspended" : window_dead(&s->window) ? "dead" : "alive";
}

static void copy_site(struct dest_site *to, struct qmgr *q, const struct site *s)
{
	const struct conf_transport *t = s->transport->settings;
	*to = (struct dest_site){
		.name = mem_strdup(s->name),
		.transport = mem_strdup(s->transport->title),
		.state = site_state(s),
		.window = s->window.concurrency,
		.limit = (int)t->destination_concurrency_limit,
		.connections = s->connections,
		.connecting = s->connecting,
		.busy = s->busy,
		.idle = s->connections - s->connecting - s->busy,
		.waiting = s->waiting,
		.rate_events = t->destination_rate.events,
		.rate_per_ms = t->destination_rate.per_ms,
		.delay_ms = t->destination_rate_delay,
		.dead_in_ms = left(s->dead_until_ms, scheduler_now_ms(q)),
		.last = verdict_ref(s->last_failure),
		.nhost = s->nhost,
		.host = mem_zalloc((size_t)s->nhost * sizeof *to->host + 1),
	};
	if (to->idle < 0)
		to->idle = 0; /* closed ones may still wait for what they carried */
	for (int i = 0; i < s->nhost; i++)
		copy_host(&to->host[i], q, s->hosts[i].host, s->hosts[i].preference & 0xffff);
}

static void add_site(struct dest_command *c, struct qmgr *q, const struct site *s)
{
	c->site = mem_realloc(c->site, (size_t)(c->nsite + 1) * sizeof *c->site);
	copy_site(&c->site[c->nsite++], q, s);
}

static void add_host(struct dest_command *c, struct qmgr *q, const struct host *h)
{
	c->host = mem_realloc(c->host, (size_t)(c->nhost + 1) * sizeof *c->host);
	copy_host(&c->host[c->nhost++], q, h, 0);
}

/* Sites of that name, or if there are none, hosts. */
static void look_up(struct qmgr *q, struct dest_command *c)
{
	for (const struct site *s = q->sites; s; s = s->hh.next)
		if (!c->name || suspend_site_is(s, c->name))
			add_site(c, q, s);
	c->hosts = c->name && c->nsite == 0;
	for (const struct host *h = q->hosts; h; h = h->hh.next)
		if (c->name ? c->hosts && suspend_host_is(h, c->name) : h->refs == 0)
			add_host(c, q, h);
	c->found = c->nsite + c->nhost;
	for (const struct suspended *n = q->suspended; n && !c->name; n = n->hh.next) {
		c->suspended = mem_realloc(c->suspended,
					   (size_t)(c->nsuspended + 1) * sizeof *c->suspended);
		c->suspended[c->nsuspended++] = mem_strdup(n->name);
	}
}

static void reset(struct qmgr *q, const char *name, bool hosts)
{
	for (struct site *s = q->sites; s && !hosts; s = s->hh.next)
		if (suspend_site_is(s, name))
			site_reset(s);
	for (struct host *h = q->hosts; h && hosts; h = h->hh.next)
		if (suspend_host_is(h, name)) {
			conn_set_depth(h, 1);
			host_forget(h);
			site_feed_waiting_for(h);
		}
	for (struct site *s = q->sites; s && hosts; s = s->hh.next)
		site_touch(s);
	q->learnt = true;
}

static void change(struct qmgr *q, struct dest_command *c)
{
	switch (c->op) {
	case DEST_SUSPEND:
		suspend_begin(q, c->name, c->hosts);
		break;
	case DEST_RESET:
		reset(q, c->name, c->hosts);
		break;
	default:
		break;
	}
}

void dest_execute(struct qmgr *q, struct dest_command *c)
{
	look_up(q, c);
	if (c->op == DEST_RESUME)
		c->found = suspend_end(q, c->name);
	else if (c->found > 0)
		change(q, c);
	if (c->op != DEST_LIST)
		scheduler_save(q); /* before the answer, so that it is on disk by then */
	loop_post(c->reply_to, &c->note);
}

struct dest_command *dest_command_new(enum dest_order op, const char *name, struct loop *reply_to,
				      void *owner)
{
	struct dest_command *c = mem_zalloc(sizeof *c);
	c->note.type = DEST_COMMAND;
	c->op = op;
	c->name = mem_strdup(name);
	c->reply_to = reply_to;
	c->owner = owner;
	return c;
}

static void fini_hosts(struct dest_host *h, int n)
{
	for (int i = 0; i < n; i++) {
		free(h[i].name);
		free(h[i].address);
		verdict_unref(h[i].why);
	}
	free(h);
}

void dest_command_free(struct dest_command **cp)
{
	struct dest_command *c = *cp;
	if (!c)
		return;
	for (int i = 0; i < c->nsite; i++) {
		fini_hosts(c->site[i].host, c->site[i].nhost);
		free(c->site[i].name);
		free(c->site[i].transport);
		verdict_unref(c->site[i].last);
	}
	free(c->site);
	fini_hosts(c->host, c->nhost);
	for (int i = 0; i < c->nsuspended; i++)
		free(c->suspended[i]);
	free(c->suspended);
	free(c->name);
	free(c);
	*cp = NULL;
}
