/* SPDX-License-Identifier: ISC */
#include "sim/scenario_rows.h"

#include "base/address.h"
#include "base/conf_units.h"
#include "base/envelope.h"
#include "base/mem.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct check {
	struct scenario *scenario;
	const struct conf_lines *lines;
	struct conf_faults *faults;
};

#define FAULT(c, place, item, without, ...)                                                        \
	conf_fault((c)->faults, (c)->scenario->file,                                               \
		   conf_lines_find((c)->lines, (place), (item), (without)), __VA_ARGS__)

static void check_spread(struct check *c, const struct conf_list *l, enum conf_type type, int line,
			 struct spread *to)
{
	static const char *const forms[] = {
		[CONF_number] = "3, 1..10 or 1..10:5",
		[CONF_size] = "2k, 1k..10m or 1k..10m:5",
		[CONF_text] = "example.org or example.org:5",
	};
	for (int i = 0; i < l->n; i++)
		if (!spread_add(to, type, l->item[i]))
			FAULT(c, l, i, line, "\"%s\" is not of the form %s", l->item[i],
			      forms[type]);
}

static void check_times(struct check *c, const struct scenario_arrival *a)
{
	bool rated = a->distribution == ARRIVE_CONSTANT || a->distribution == ARRIVE_POISSON;
	if (rated && a->rate.events == 0 && a->messages > 1)
		FAULT(c, &a->distribution, -1, a->line, "arrival \"%s\" needs a rate", a->title);
	if (!rated && a->rate.events > 0)
		FAULT(c, &a->rate, -1, a->line, "uniform arrivals and bursts have no rate");
	if (a->distribution == ARRIVE_UNIFORM && a->within == 0)
		FAULT(c, &a->distribution, -1, a->line,
		      "arrival \"%s\" needs within: the time in which all come", a->title);
	if (a->distribution != ARRIVE_UNIFORM && a->within > 0)
		FAULT(c, &a->within, -1, a->line, "within is for uniform arrivals only");
}

/* A trace has times, sizes and recipients of its own. */
static void check_trace(struct check *c, const struct scenario_arrival *a)
{
	const struct {
		const void *place;
		const char *name;
	} others[] = {{&a->distribution, "distribution"},
		      {&a->messages, "messages"},
		      {&a->rate, "rate"},
		      {&a->within, "within"},
		      {&a->burst, "burst"},
		      {&a->interval, "interval"},
		      {&a->recipients, "recipients"},
		      {&a->sizes, "sizes"},
		      {&a->flows, "flows"}};
	for (size_t i = 0; *a->trace && i < sizeof others / sizeof others[0]; i++)
		if (conf_lines_find(c->lines, others[i].place, -1, 0) > 0)
			FAULT(c, others[i].place, -1, a->line, "%s is not for a trace",
			      others[i].name);
}

static void check_flows(struct check *c, struct scenario_arrival *a)
{
	check_spread(c, &a->flows, CONF_text, a->line, &a->flow_spread);
	for (int i = 0; i < a->flow_spread.n; i++)
		if (!envelope_flow_good(a->flow_spread.item[i].word))
			FAULT(c, &a->flows, -1, a->line, "\"%s\" is not the name of a flow",
			      a->flow_spread.item[i].word);
}

/* So that their mean is 1. */
static double *check_weights(struct check *c, const struct conf_list *l, int line, const char *name)
{
	double *weight = mem_zalloc((size_t)(l->n + 1) * sizeof *weight), sum = 0;
	for (int i = 0; i < l->n; i++) {
		char *end;
		weight[i] = strtod(l->item[i], &end);
		if (end == l->item[i] || *end || !(weight[i] >= 0 && weight[i] <= 1e6))
			FAULT(c, l, i, line, "%s are numbers from 0, not \"%s\"", name, l->item[i]);
		sum += weight[i];
	}
	if (l->n > 0 && !(sum > 0))
		FAULT(c, l, -1, line, "not all %s can be 0", name);
	for (int i = 0; i < l->n; i++)
		weight[i] *= l->n / sum;
	return weight;
}

static void check_seasons(struct check *c, struct scenario_arrival *a)
{
	a->nhour = a->hours.n;
	a->nweekday = a->weekdays.n;
	a->hour = check_weights(c, &a->hours, a->line, "hours");
	a->weekday = check_weights(c, &a->weekdays, a->line, "weekdays");
	if (a->nweekday != 0 && a->nweekday != 7)
		FAULT(c, &a->weekdays, -1, a->line, "a week has seven days");
	if ((a->nhour > 0 || a->nweekday > 0) && a->distribution != ARRIVE_POISSON)
		FAULT(c, &a->distribution, -1, a->line,
		      "hours and weekdays are for poisson arrivals only");
}

static void check_recipients(struct check *c, struct scenario_arrival *a)
{
	check_spread(c, &a->recipients, CONF_number, a->line, &a->recipient_spread);
	for (int i = 0; i < a->recipient_spread.n; i++)
		if (a->recipient_spread.item[i].high > ARRIVAL_RECIPIENTS_MAX)
			FAULT(c, &a->recipients, i, a->line, "a message has at most %d recipients",
			      ARRIVAL_RECIPIENTS_MAX);
}

static void check_arrival(struct check *c, struct scenario_arrival *a)
{
	check_times(c, a);
	check_trace(c, a);
	check_seasons(c, a);
	check_recipients(c, a);
	check_spread(c, &a->domains, CONF_text, a->line, &a->domain_spread);
	check_spread(c, &a->sizes, CONF_size, a->line, &a->size_spread);
	check_flows(c, a);
	if (a->recipients.n == 0 || a->sizes.n == 0)
		FAULT(c, a, -1, a->line, "arrival \"%s\" needs recipients and sizes", a->title);
	if (a->domains.n == 0 && !*a->trace)
		FAULT(c, a, -1, a->line, "arrival \"%s\" has no domains", a->title);
	for (int i = 0; i < a->domain_spread.n; i++)
		if (!scenario_find_site(c->scenario, a->domain_spread.item[i].word) &&
		    scenario_find_host(c->scenario, a->domain_spread.item[i].word) < 0)
			FAULT(c, &a->domains, i, a->line, "no site serves \"%s\"",
			      a->domain_spread.item[i].word);
}

static int by_preference(const void *a, const void *b)
{
	const struct scenario_mx *x = a, *y = b;
	return x->preference != y->preference ? x->preference - y->preference : x->host - y->host;
}

static void check_mx(struct check *c, struct scenario_site *site, int i)
{
	char name[256], called[256] = "";
	unsigned preference;
	int end = 0, whole = 0;
	const char *text = site->mx.item[i];
	int n = sscanf(text, "%5u %255s%n %255s%n", &preference, name, &end, called, &whole);
	if (n < 2 || text[n == 3 ? whole : end] || preference > UINT16_MAX) {
		FAULT(c, &site->mx, i, site->line, "\"%s\" is not of the form 10 mx.example.org",
		      text);
		return;
	}
	int host = scenario_find_host(c->scenario, name);
	if (host < 0)
		FAULT(c, &site->mx, i, site->line, "there is no host \"%s\"", name);
	else
		site->to[site->nmx++] = (struct scenario_mx){(uint16_t)preference, host,
							     *called ? mem_strdup(called) : NULL};
}

static void check_site(struct check *c, struct scenario_site *site)
{
	if (site->domains.n == 0)
		FAULT(c, site, -1, site->line, "site \"%s\" has no domains", site->title);
	if (*site->failure ? site->mx.n > 0 : site->mx.n == 0)
		FAULT(c, site, -1, site->line, "site \"%s\" needs mx, or else failure",
		      site->title);
	if (site->mx.n > RESOLVE_HOSTS_MAX)
		FAULT(c, &site->mx, -1, site->line, "a site has at most %d hosts",
		      RESOLVE_HOSTS_MAX);
	if (*site->failure && !strchr("45", site->failure[0]))
		FAULT(c, &site->failure, -1, site->line, "failure is a code like 4.4.3 or 5.1.2");
	site->to = mem_zalloc((size_t)(site->mx.n + 1) * sizeof *site->to);
	for (int i = 0; i < site->mx.n; i++)
		check_mx(c, site, i);
	qsort(site->to, (size_t)site->nmx, sizeof *site->to, by_preference);
	for (const struct scenario_site *o = c->scenario->site; o < site; o++)
		for (int i = 0; i < site->domains.n; i++)
			for (int d = 0; d < o->domains.n; d++)
				if (strcasecmp(site->domains.item[i], o->domains.item[d]) == 0)
					FAULT(c, &site->domains, i, site->line,
					      "\"%s\" is served by site \"%s\" already",
					      site->domains.item[i], o->title);
}

static double check_part(struct check *c, char *const *text, int line, const char *name)
{
	char *end;
	double part = strtod(*text, &end);
	if (end != *text && *end == '%' && !end[1])
		part /= 100, end++;
	if (end == *text || *end || !(part >= 0 && part <= 1))
		FAULT(c, text, -1, line, "%s must be 0 to 1, or 0%% to 100%%, not \"%s\"", name,
		      *text);
	return part;
}

static bool parse_span(const char *text, struct scenario_span *to)
{
	struct buf why = {0};
	const char *dots = strstr(text, "..");
	char *from = mem_strndup(text, dots ? (size_t)(dots - text) : 0);
	bool good = dots && conf_amount_parse(CONF_duration, from, &to->from_ms, &why) &&
		    conf_amount_parse(CONF_duration, dots + 2, &to->to_ms, &why) &&
		    to->from_ms >= 0 && to->from_ms < to->to_ms;
	free(from);
	buf_fini(&why);
	return good;
}

static struct scenario_span *check_spans(struct check *c, const struct conf_list *l, int line,
					 int *n)
{
	struct scenario_span *span = mem_zalloc((size_t)(l->n + 1) * sizeof *span);
	for (int i = 0; i < l->n; i++)
		if (!parse_span(l->item[i], &span[(*n)++]))
			FAULT(c, l, i, line, "\"%s\" is not of the form 10m..1h", l->item[i]);
	return span;
}

/* "10m..1h WORD", or with a time only; before: the word comes first. */
static bool parse_named(const char *text, bool first, bool spans, struct scenario_named *to)
{
	char one[300], other[300];
	int end = 0;
	if (sscanf(text, "%299s %299s%n", one, other, &end) != 2 || text[end])
		return false;
	const char *when = first ? other : one;
	struct buf why = {0};
	bool good = spans ? parse_span(when, &to->span)
			  : conf_amount_parse(CONF_duration, when, &to->span.from_ms, &why) &&
				    to->span.from_ms >= 0;
	buf_fini(&why);
	to->name = mem_strdup(first ? one : other);
	return good;
}

static struct scenario_named *check_named(struct check *c, const struct conf_list *l, int line,
					  const char *form, int *n)
{
	bool first = *form == 'N', spans = strstr(form, "..") != NULL;
	struct scenario_named *named = mem_zalloc((size_t)(l->n + 1) * sizeof *named);
	for (int i = 0; i < l->n; i++)
		if (!parse_named(l->item[i], first, spans, &named[(*n)++]))
			FAULT(c, l, i, line, "\"%s\" is not of the form %s", l->item[i], form);
	return named;
}

static void check_blocked(struct check *c, struct scenario_host *h)
{
	h->blocking = check_named(c, &h->blocked, h->line, "10m..1h ADDRESS", &h->nblocked);
	for (int i = 0; i < h->nblocked; i++) {
		union address a;
		char text[ADDRESS_WHERE_MAX];
		char *name = h->blocking[i].name;
		if (!name || !address_parse(name, 0, &a)) {
			FAULT(c, &h->blocked, i, h->line, "\"%s\" names no address",
			      h->blocked.item[i]);
			continue;
		}
		h->blocking[i].name = mem_strdup(address_where(&a, text));
		free(name);
	}
	if (h->nblocked > 0 && c->scenario->simulation.binding != BINDING_LATE)
		FAULT(c, &h->blocked, -1, h->line,
		      "agents know no sources: blocked is for late binding");
}

static void check_outages(struct check *c, struct scenario_host *h)
{
	h->span = check_spans(c, &h->outages, h->line, &h->nspan);
	for (int i = 0; i < h->nspan && h->outage_every > 0; i++)
		if (h->span[i].to_ms > h->outage_every)
			FAULT(c, &h->outage_every, -1, h->line,
			      "\"%s\" does not end before it comes again", h->outages.item[i]);
	if (h->outage_every > 0 && h->outages.n == 0)
		FAULT(c, &h->outage_every, -1, h->line, "outage_every needs outages");
}

static bool parse_limit(const char *text, struct scenario_limit *to)
{
	struct buf why = {0};
	char from[32];
	int end = 0;
	bool good = sscanf(text, "%31s %9d%n", from, &to->n, &end) == 2 && !text[end] &&
		    to->n >= 0 && conf_amount_parse(CONF_duration, from, &to->from_ms, &why) &&
		    to->from_ms >= 0;
	buf_fini(&why);
	return good;
}

static void check_limits(struct check *c, struct scenario_host *h)
{
	h->limit = mem_zalloc((size_t)(h->limits.n + 1) * sizeof *h->limit);
	for (int i = 0; i < h->limits.n; i++) {
		struct scenario_limit *l = &h->limit[h->nlimit++];
		if (!parse_limit(h->limits.item[i], l))
			FAULT(c, &h->limits, i, h->line, "\"%s\" is not of the form \"20m 5\"",
			      h->limits.item[i]);
		else if (i > 0 && l->from_ms <= l[-1].from_ms)
			FAULT(c, &h->limits, i, h->line, "limits are in the order of time");
	}
}

static void check_host(struct check *c, struct scenario_host *h)
{
	int i = (int)(h - c->scenario->host);
	char made_up[32];
	snprintf(made_up, sizeof made_up, "10.%d.%d.%d", i / 62500 + 1, i / 250 % 250, i % 250 + 1);
	if (!address_parse(h->title, 0, &h->address))
		address_parse(made_up, 0, &h->address);
	h->noise_part = check_part(c, &h->noise, h->line, "noise");
	h->refused_part = check_part(c, &h->refused, h->line, "refused");
	h->deferred_part = check_part(c, &h->deferred, h->line, "deferred");
	h->failed_part = check_part(c, &h->failed, h->line, "failed");
	h->broken_part = check_part(c, &h->broken, h->line, "broken");
	if (h->deferred_part + h->failed_part > 1)
		FAULT(c, h, -1, h->line, "deferred and failed are more than all");
	if (h->backlog > 0 && h->connection_limit == 0 && h->limits.n == 0)
		FAULT(c, &h->backlog, -1, h->line, "a backlog needs a connection_limit");
	check_outages(c, h);
	check_limits(c, h);
	check_blocked(c, h);
}

void scenario_check(struct scenario *s, const struct conf_lines *lines, struct conf_faults *faults)
{
	struct check c = {s, lines, faults};
	if (s->narrival == 0)
		conf_fault(faults, s->file, 1, "there is no arrival");
	for (int i = 0; i < s->nhost; i++)
		check_host(&c, &s->host[i]);
	for (int i = 0; i < s->nsite; i++)
		check_site(&c, &s->site[i]);
	for (int i = 0; i < s->narrival; i++)
		check_arrival(&c, &s->arrival[i]);
	s->simulation.suspended =
		check_named(&c, &s->simulation.suspend, 1, "10m FLOW", &s->simulation.nsuspended);
	s->simulation.period =
		check_named(&c, &s->simulation.periods, 1, "NAME 10m..1h", &s->simulation.nperiod);
	s->simulation.column = check_spans(&c, &s->simulation.columns, 1, &s->simulation.ncolumn);
	if (s->simulation.ncolumn > SCENARIO_COLUMNS)
		FAULT(&c, &s->simulation.columns, -1, 1, "a picture has %d columns at most",
		      SCENARIO_COLUMNS);
	s->redis.span = check_spans(&c, &s->redis.outages, 1, &s->redis.nspan);
	scenario_check_nodes(s, lines, faults);
	bool late = s->simulation.binding == BINDING_LATE;
	if (s->simulation.connection_cache && late)
		FAULT(&c, &s->simulation.connection_cache, -1, 1,
		      "connection_cache is for early binding only");
	if (s->simulation.agent_start > 0 && late)
		FAULT(&c, &s->simulation.agent_start, -1, 1,
		      "agent_start is for early binding only");
}
