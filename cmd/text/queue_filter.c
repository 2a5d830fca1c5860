/* SPDX-License-Identifier: ISC */
#include "cmd/text/queue_filter.h"

#include "base/address.h"
#include "base/address_pattern.h"
#include "base/conf_units.h"
#include "base/mailaddr.h"
#include "base/mem.h"
#include "base/name_key.h"
#include "base/netlist.h"
#include "base/users.h"
#include "cmd/text/queue_sites.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void queue_filter_init(struct queue_filter *f)
{
	*f = (struct queue_filter){.older_ms = -1};
}

void queue_filter_fini(struct queue_filter *f)
{
	for (int i = 0; i < QUEUE_BY_VALUES; i++)
		free(f->values[i].of);
	for (int i = 0; i < f->nown; i++)
		free(f->own[i]);
	free(f->own);
	queue_filter_init(f);
}

static bool add_queue(struct queue_filter *f, const char *text, struct buf *error)
{
	unsigned queue = spool_queue_bit(text, strlen(text));
	f->queues |= queue;
	if (queue)
		return true;
	buf_printf(error, "--queue is one of incoming, active, deferred, hold; not %s", text);
	return false;
}

/* Of several ages the youngest takes the others in. */
static bool add_older(struct queue_filter *f, const char *text, struct buf *error)
{
	struct buf why = {0};
	int64_t ms;
	bool ok = conf_amount_parse(CONF_duration, text, &ms, &why) && ms >= 0;
	if (!ok)
		buf_printf(error, "--older %s: %s", text,
			   buf_len(&why) ? buf_cstr(&why) : "is no time");
	else if (f->older_ms < 0 || ms < f->older_ms)
		f->older_ms = ms;
	buf_fini(&why);
	return ok;
}

static bool is_network(const char *text, struct buf *error)
{
	struct net net;
	if (net_parse(text, &net))
		return true;
	buf_printf(error, "--client %s: it is no address and no network", text);
	return false;
}

static void add_value(struct queue_values *v, const char *value)
{
	v->of = mem_realloc(v->of, ((size_t)v->n + 1) * sizeof *v->of);
	v->of[v->n++] = value;
}

/* Takes the value over. */
static void add_own(struct queue_filter *f, enum queue_condition by, char *value)
{
	f->own = mem_realloc(f->own, ((size_t)f->nown + 1) * sizeof *f->own);
	f->own[f->nown++] = value;
	add_value(&f->values[by], value);
}

/* The form that the envelope of a message has; a local user of the maildrop is there as the system has it. */
static void add_folded_login(struct queue_filter *f, const char *value)
{
	char login[USERS_LOGIN_MAX + 1];
	if (users_folded(value, login) && strcmp(login, value) != 0)
		add_own(f, QUEUE_BY_LOGIN, mem_strdup(login));
}

bool queue_filter_add(struct queue_filter *f, enum queue_condition by, const char *value,
		      struct buf *error)
{
	f->any = true;
	if (by == QUEUE_BY_QUEUE)
		return add_queue(f, value, error);
	if (by == QUEUE_BY_OLDER)
		return add_older(f, value, error);
	if (by == QUEUE_BY_CLIENT && !is_network(value, error))
		return false;
	if (by == QUEUE_BY_REASON && !*value) {
		buf_puts(error, "--reason is empty, which is a part of every reply; --all is all");
		return false;
	}
	assert(by < QUEUE_BY_VALUES);
	if (by == QUEUE_BY_FROM || by == QUEUE_BY_TO)
		add_own(f, by, address_pattern_copy(value));
	else
		add_value(&f->values[by], value);
	if (by == QUEUE_BY_LOGIN)
		add_folded_login(f, value);
	return true;
}

static bool one_is_in(const struct verdict *v, const char *text)
{
	char codes[32];
	snprintf(codes, sizeof codes, "%d %s", v->code, v->dsn);
	return strcasestr(v->text, text) || strcasestr(v->host, text) || strcasestr(codes, text);
}

static bool value_fits(enum queue_condition by, const char *value, const struct recipient *r)
{
	if (by == QUEUE_BY_TO)
		return address_pattern_fits(value, r->address);
	if (by == QUEUE_BY_DOMAIN)
		return address_pattern_fits_domain(value, mailaddr_domain(r->address));
	return r->last && one_is_in(r->last, value);
}

static bool condition_met(const struct queue_filter *f, enum queue_condition by,
			  const struct recipient *r)
{
	for (int i = 0; i < f->values[by].n; i++)
		if (value_fits(by, f->values[by].of[i], r))
			return true;
	return f->values[by].n == 0;
}

static bool sender_fits(const struct queue_values *v, const char *sender)
{
	for (int i = 0; i < v->n; i++)
		if (address_pattern_fits(v->of[i], sender))
			return true;
	return v->n == 0;
}

static bool is_one_of(const struct queue_values *v, const char *text)
{
	for (int i = 0; text && i < v->n; i++)
		if (strcmp(v->of[i], text) == 0)
			return true;
	return v->n == 0;
}

/* In each of its spellings, as flows are compared. */
static bool flow_fits(const struct queue_values *v, const char *flow)
{
	for (int i = 0; i < v->n; i++)
		if (name_key_same(v->of[i], flow))
			return true;
	return v->n == 0;
}

static bool client_fits(const struct queue_values *v, const char *client)
{
	union address address;
	struct net net;
	bool known = v->n > 0 && client && address_parse(client, 0, &address);
	for (int i = 0; known && i < v->n; i++)
		if (net_parse(v->of[i], &net) && net_match(&net, &address))
			return true;
	return v->n == 0;
}

static bool origin_fits(const struct queue_filter *f, const struct envelope *e)
{
	return sender_fits(&f->values[QUEUE_BY_FROM], e->sender) &&
	       flow_fits(&f->values[QUEUE_BY_FLOW], envelope_flow(e)) &&
	       is_one_of(&f->values[QUEUE_BY_LOGIN], e->user) &&
	       client_fits(&f->values[QUEUE_BY_CLIENT], e->client);
}

bool queue_filter_match(const struct queue_filter *f, struct queue_sites *sites,
			const struct spool_row *row, int64_t now_ms)
{
	const struct envelope *e = row->envelope;
	if ((f->queues && !(f->queues & 1u << row->queue)) ||
	    (f->older_ms >= 0 && now_ms - e->arrived_ms < f->older_ms) || !origin_fits(f, e))
		return false;
	bool asks_recipients = f->values[QUEUE_BY_TO].n + f->values[QUEUE_BY_DOMAIN].n +
				       f->values[QUEUE_BY_SITE].n + f->values[QUEUE_BY_REASON].n >
			       0;
	for (uint32_t i = 0; i < e->nrcpt && asks_recipients; i++) {
		const struct recipient *r = &e->rcpt[i];
		if (!r->done && condition_met(f, QUEUE_BY_TO, r) &&
		    condition_met(f, QUEUE_BY_DOMAIN, r) && condition_met(f, QUEUE_BY_REASON, r) &&
		    (f->values[QUEUE_BY_SITE].n == 0 || queue_sites_lead(sites, e, r)))
			return true;
	}
	return !asks_recipients;
}
