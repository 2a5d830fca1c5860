/* SPDX-License-Identifier: ISC */
#include "sim/learn.h"

#include "base/conf_file.h"
#include "base/mailaddr.h"
#include "base/mem.h"
#include "base/name_key.h"
#include "sim/event.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Since the start of the log: what came before the first message came with it. */
static int64_t since_start(const struct learn *l, int64_t at_ms)
{
	return l->first_ms >= 0 && at_ms > l->first_ms ? at_ms - l->first_ms : 0;
}

static char *copy_field(struct learn *l, const char *line, const char *key)
{
	return mem_strdup(event_field(line, key, &l->value) ? buf_cstr(&l->value) : "");
}

static struct learn_site *site_get(struct learn *l, const char *transport, const char *name)
{
	struct learn_site *s;
	char *key = mem_printf("%s %s", transport, name);
	HASH_FIND_STR(l->sites, key, s);
	if (s) {
		free(key);
		return s;
	}
	s = mem_zalloc(sizeof *s);
	s->key = key;
	s->name = mem_strdup(name);
	s->transport = mem_strdup(transport);
	HASH_ADD_KEYPTR(hh, l->sites, s->key, strlen(s->key), s);
	return s;
}

static void add_mx(struct learn_site *s, struct learn_host *h, const char *relay)
{
	size_t len = strcspn(relay, "[");
	for (const struct learn_mx *mx = s->mx; mx; mx = mx->next)
		if (mx->host == h && strncmp(mx->name, relay, len) == 0 && !mx->name[len])
			return;
	struct learn_mx *mx = mem_zalloc(sizeof *mx);
	mx->name = mem_strndup(relay, len);
	mx->host = h;
	mx->next = s->mx;
	s->mx = mx;
}

/* However it was spelt: as it is asked for in the DNS. */
static struct learn_domain *domain_get(struct learn *l, const char *domain)
{
	struct learn_domain *d;
	char *name = name_key(domain);
	HASH_FIND_STR(l->domains, name, d);
	if (d) {
		free(name);
		return d;
	}
	d = mem_zalloc(sizeof *d);
	d->name = name;
	HASH_ADD_KEYPTR(hh, l->domains, d->name, strlen(d->name), d);
	return d;
}

/* Names that were not found say nothing of a domain that was found at another time. */
static void goes_to(struct learn *l, const char *domain, struct learn_site *s)
{
	struct learn_domain *d = domain_get(l, domain);
	d->recipients++;
	if (!d->site || s->mx || !d->site->mx)
		d->site = s;
}

/* One delivery has a line for each of its recipients. */
static bool is_same_delivery(struct learn *l, const char *id, const char *delays)
{
	char *both = mem_printf("%s %s", id, delays);
	bool same = strcmp(buf_cstr(&l->last), both) == 0;
	buf_clear(&l->last);
	buf_puts(&l->last, both);
	free(both);
	return same;
}

/* Where it waited for a pace, that is time in the queue: the second of the four. */
static void took_recipient(struct learn_site *s, const char *delays, int64_t at_ms)
{
	double before, queued, setup, transmission;
	if (sscanf(delays, "%lf/%lf/%lf/%lf", &before, &queued, &setup, &transmission) != 4)
		return;
	int64_t went_ms = at_ms - learn_ms(setup + transmission, DAYS(1));
	learn_site_took(s, went_ms - learn_ms(queued, DAYS(365)), went_ms);
}

/* Refusals that the host's pace tells already are no share of its recipients. */
static bool is_of_pace(const struct learn_site *s, const char *event, const char *reply)
{
	return s->refusal && strcmp(event, "deferred") == 0 && strcmp(reply, s->refusal) == 0;
}

static void host_said(struct learn_host *h, const char *event, const char *reply, int64_t at_ms)
{
	bool code = isdigit((unsigned char)reply[0]) && strncmp(reply, "421", 3) != 0;
	if (strcmp(event, "sent") == 0)
		learn_host_replied(h, LEARN_SENT, at_ms);
	else if (strcmp(event, "in_doubt") == 0)
		learn_host_replied(h, LEARN_IN_DOUBT, at_ms);
	else if (code)
		learn_host_replied(h, reply[0] == '5' ? LEARN_FAILED : LEARN_DEFERRED, at_ms);
	else if (strcmp(event, "deferred") == 0)
		learn_host_failed(h, reply, at_ms);
}

static void take_delivery(struct learn *l, const char *line, const char *event, int64_t at_ms)
{
	char *to = copy_field(l, line, "to"), *site = copy_field(l, line, "site");
	char *relay = copy_field(l, line, "relay"), *transport = copy_field(l, line, "transport");
	char *delays = copy_field(l, line, "delays"), *reply = copy_field(l, line, "reply");
	char *dsn = copy_field(l, line, "dsn"), *id = copy_field(l, line, "id");
	struct learn_host *h = learn_host_get(l, relay);
	bool found = h && *site && strcmp(site, "none") != 0;
	struct learn_site *s = site_get(l, *transport ? transport : "smtp", found ? site : dsn);
	if (found)
		add_mx(s, h, relay);
	if (strchr(to, '@'))
		goes_to(l, mailaddr_domain(to), s);
	if (found && !is_same_delivery(l, id, delays))
		learn_host_delays(h, delays);
	if (found && strcmp(event, "sent") == 0)
		took_recipient(s, delays, at_ms);
	if (found && !is_of_pace(s, event, reply))
		host_said(h, event, reply, at_ms);
	char *all[] = {to, site, relay, transport, delays, reply, dsn, id};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		free(all[i]);
}

static void host_event(struct learn *l, const char *line, int64_t at_ms)
{
	char *name = copy_field(l, line, "host"), *state = copy_field(l, line, "state");
	char *reason = copy_field(l, line, "reason"), *limit = copy_field(l, line, "limit");
	struct learn_host *h = learn_host_get(l, name);
	if (h && strcmp(state, "out") == 0)
		learn_host_failed(h, reason, at_ms);
	else if (h && (strcmp(state, "back") == 0 || strcmp(state, "ready") == 0))
		learn_host_serves(h, at_ms);
	else if (h && strcmp(state, "limited") == 0)
		learn_host_limited(h, atoi(limit), at_ms);
	free(name);
	free(state);
	free(reason);
	free(limit);
}

static void pace_event(struct learn *l, const char *line, int64_t at_ms)
{
	char *name = copy_field(l, line, "site"), *transport = copy_field(l, line, "transport");
	char *state = copy_field(l, line, "state"), *reply = copy_field(l, line, "reply");
	if (*name && strcmp(state, "free") != 0)
		learn_site_refused(site_get(l, transport, name), reply, at_ms);
	free(name);
	free(transport);
	free(state);
	free(reply);
}

static void take_queued(struct learn *l, const char *line, int64_t wall_ms)
{
	if (event_field(line, "report_of", &l->value))
		return;
	if (l->first_ms < 0)
		l->first_ms = wall_ms;
	l->messages++;
}

static void take_line(struct learn *l, const char *line)
{
	int64_t wall_ms;
	char *time = copy_field(l, line, "time"), *event = copy_field(l, line, "event");
	static const char *const deliveries[] = {"sent", "deferred", "bounced", "in_doubt"};
	if (event_time(time, &wall_ms)) {
		l->last_ms = wall_ms;
		if (strcmp(event, "queued") == 0)
			take_queued(l, line, wall_ms);
		else if (strcmp(event, "host") == 0)
			host_event(l, line, since_start(l, wall_ms));
		else if (strcmp(event, "pace") == 0)
			pace_event(l, line, since_start(l, wall_ms));
		for (int i = 0; i < 4; i++)
			if (strcmp(event, deliveries[i]) == 0)
				take_delivery(l, line, event, since_start(l, wall_ms));
	}
	free(time);
	free(event);
}

static void free_site(struct learn_site *s)
{
	for (struct learn_mx *mx; (mx = s->mx) != NULL;) {
		s->mx = mx->next;
		free(mx->name);
		free(mx);
	}
	free(s->refusal);
	free(s->wait);
	free(s->key);
	free(s->name);
	free(s->transport);
	free(s);
}

static void learn_fini(struct learn *l)
{
	hash_each (struct learn_domain, d, l->domains) {
		HASH_DEL(l->domains, d);
		free(d->name);
		free(d);
	}
	hash_each (struct learn_site, s, l->sites) {
		HASH_DEL(l->sites, s);
		free_site(s);
	}
	learn_hosts_free(l);
	buf_fini(&l->value);
	buf_fini(&l->last);
	free(l->file);
}

/* Hosts that were out when the log ended. */
static void end_of_log(struct learn *l)
{
	for (struct learn_host *h = l->hosts; h; h = h->hh.next)
		learn_host_serves(h, since_start(l, l->last_ms));
}

bool learn_scenario(const char *file, struct buf *to, struct buf *errors)
{
	struct conf_faults faults = {0};
	struct learn l = {.first_ms = -1, .file = realpath(file, NULL)};
	char *text = conf_file_text(file, &faults);
	for (char *rest = text, *line; text && (line = strsep(&rest, "\n")) != NULL;)
		take_line(&l, line);
	end_of_log(&l);
	if (text && !l.file)
		conf_fault(&faults, file, 1,
			   "it is a pipe; the scenario names the log, which must be a file");
	else if (text && !l.domains)
		conf_fault(&faults, file, 1, "no message that was delivered, or tried, is in it");
	else if (text && l.messages == 0)
		conf_fault(&faults, file, 1, "no message was queued in it");
	bool good = faults.n == 0;
	if (good)
		learn_write(&l, to);
	conf_faults_say(&faults, errors);
	conf_faults_fini(&faults);
	free(text);
	learn_fini(&l);
	return good;
}
