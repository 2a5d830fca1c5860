/* SPDX-License-Identifier: ISC */
/* Facts that were learnt, as the text of a scenario. */
#include "sim/learn.h"

#include "base/conf.h"
#include "base/internet_time.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { PART = 10000 };

/* Text that a quoted string of a configuration takes as it is. */
static bool is_plain(const char *text)
{
	for (; *text; text++)
		if (!isalnum((unsigned char)*text) && !strchr(".-_[] ,;/", *text))
			return false;
	return true;
}

static void write_title(const char *text, struct buf *to)
{
	buf_puts(to, "\"");
	for (; *text; text++)
		buf_printf(to, "%c",
			   (unsigned char)*text < ' ' || strchr("\"\\$", *text) ? '_' : *text);
	buf_puts(to, "\"");
}

static void write_head(const struct learn *l, struct buf *to)
{
	char from[INTERNET_TIME_TEXT];
	internet_time_text(l->first_ms, from);
	buf_printf(to,
		   "# What is in %s: %" PRId64 " messages from %s on, in %" PRId64 " s.\n"
		   "# depth is not in a log: here all hosts take PIPELINING.\n",
		   l->file, l->messages, from, (l->last_ms - l->first_ms) / 1000);
}

/* Others, as address literals, are no domains that a scenario can name. */
static bool is_written(const struct learn_domain *d)
{
	return conf_host_good(d->name);
}

static void write_arrival(const struct learn *l, struct buf *to)
{
	buf_puts(to, "arrival \"log\" {\n\ttrace = ");
	write_title(l->file, to);
	buf_puts(to, "\n");
	for (const struct learn_domain *d = l->domains; d; d = d->hh.next)
		if (is_written(d))
			buf_printf(to, "\tdomains += {\"%s:%" PRId64 "\"}\n", d->name,
				   d->recipients);
	buf_puts(to, "}\n");
}

static void write_transports(const struct learn *l, struct buf *to)
{
	for (const struct learn_site *s = l->sites; s; s = s->hh.next) {
		bool known = strcmp(s->transport, "smtp") == 0 || strcmp(s->transport, "none") == 0;
		for (const struct learn_site *o = l->sites; o != s; o = o->hh.next)
			known |= strcmp(o->transport, s->transport) == 0;
		if (known)
			continue;
		buf_puts(to, "transport ");
		write_title(s->transport, to);
		buf_puts(to, " {}\n");
	}
}

static void write_route(const struct learn_domain *d, struct buf *to)
{
	if (strcmp(d->site->transport, "smtp") == 0 || strcmp(d->site->transport, "none") == 0)
		return;
	buf_printf(to, "route \"%s\" { transport = ", d->name);
	write_title(d->site->transport, to);
	buf_puts(to, " }\n");
}

/* A site is called by its hosts, "mx1,mx2;backup": a semicolon stands between two preferences. */
static int preference_of(const struct learn_site *s, const char *name)
{
	int group = 1;
	size_t len = strlen(name);
	for (const char *at = s->name; *at; at += strcspn(at, ",;")) {
		group += *at == ';';
		at += strspn(at, ",;");
		if (strncmp(at, name, len) == 0 && strchr(",;", at[len]))
			return 10 * group;
	}
	return 10;
}

static bool names_host(const struct learn_mx *mx)
{
	return *mx->name && is_plain(mx->name);
}

static void write_mx(const struct learn_site *s, struct buf *to)
{
	for (const struct learn_mx *mx = s->mx; mx; mx = mx->next)
		buf_printf(to, "\tmx += {\"%d %s%s%s\"}\n", preference_of(s, mx->name),
			   mx->host->address, names_host(mx) ? " " : "",
			   names_host(mx) ? mx->name : "");
}

/* Where the first domain went that could not be written: with it goes all the mail of such. NULL: there is none. */
static const struct learn_site *site_of_rest(const struct learn *l)
{
	for (const struct learn_domain *d = l->domains; d; d = d->hh.next)
		if (!is_written(d))
			return d->site;
	return NULL;
}

static void write_domains(const struct learn *l, const struct learn_site *s, struct buf *to)
{
	for (const struct learn_domain *d = l->domains; d; d = d->hh.next)
		if (d->site == s && is_written(d))
			buf_printf(to, "\tdomains += {\"%s\"}\n", d->name);
}

static void write_site(const struct learn *l, const struct learn_site *s, bool rest, struct buf *to)
{
	struct buf domains = {0};
	if (rest)
		buf_puts(&domains, "\tdomains += {\"*\"}\n");
	write_domains(l, s, &domains);
	if (buf_len(&domains) > 0) {
		buf_puts(to, "site ");
		write_title(s->key, to);
		buf_printf(to, " {\n%s", buf_cstr(&domains));
		write_mx(s, to);
		if (!s->mx)
			buf_printf(to, "\tfailure = \"%s\"\n",
				   s->name[0] == '5' ? "5.1.2" : "4.4.3");
		buf_puts(to, "}\n");
	}
	buf_fini(&domains);
}

/* Rounded down: two of them may be all together, and not more. */
static void write_part(const char *name, int64_t n, int64_t of, struct buf *to)
{
	int64_t part = n < of ? n * PART / of : PART;
	if (n > 0)
		buf_printf(to, "\t%s = \"%.4f\"\n", name, (double)part / PART);
}

/* Of the set-up a third is TCP; the distance of a transaction is two of its three round trips, and
 * no more than what the quickest took. */
static void write_times(struct learn_host *h, struct buf *to)
{
	int64_t setup_ms = numbers_quantile(&h->setup_ms, 0.5);
	int64_t middle_ms = numbers_quantile(&h->transmission_ms, 0.5);
	int64_t least_ms = numbers_quantile(&h->transmission_ms, 0);
	int64_t way_ms = numbers_quantile(&h->setup_ms, 0) * 2 / 3;
	int64_t spread_ms = numbers_quantile(&h->transmission_ms, 0.9) -
			    numbers_quantile(&h->transmission_ms, 0.1);
	double noise = middle_ms > 0 ? (double)spread_ms / 2 / (double)middle_ms : 0;
	if (h->setup_ms.n > 0)
		buf_printf(to, "\tconnect = %" PRId64 "ms\n\tgreeting = %" PRId64 "ms\n",
			   setup_ms / 3, setup_ms - setup_ms / 3);
	if (h->transmission_ms.n == 0)
		return;
	if (h->setup_ms.n == 0 || way_ms > least_ms)
		way_ms = least_ms;
	buf_printf(to,
		   "\tround_trip = %" PRId64 "ms\n\ttransaction = %" PRId64
		   "ms\n\tnoise = \"%.2f\"\n",
		   way_ms, middle_ms - way_ms, noise < 0.9 ? noise : 0.9);
}

static void write_limits(const struct learn_host *h, struct buf *to)
{
	if (h->nlimit == 1)
		buf_printf(to, "\tconnection_limit = %d\n", h->limit[0].n);
	for (int i = 0; i < h->nlimit && h->nlimit > 1; i++)
		if (i == 0 || h->limit[i].at_ms > h->limit[i - 1].at_ms)
			buf_printf(to, "\tlimits += {\"%" PRId64 "ms %d\"}\n",
				   i == 0 ? 0 : h->limit[i].at_ms, h->limit[i].n);
}

/* How it was most of the times. */
static const char *kind_of_outage(const struct learn_host *h)
{
	int failures = 0, silent = 0, busy = 0;
	for (int i = 0; i < h->nspan; i++) {
		if (!learn_is_outage(&h->span[i]))
			continue;
		failures += h->span[i].failures;
		silent += h->span[i].silent;
		busy += h->span[i].busy;
	}
	if (2 * silent > failures)
		return "silent";
	return 2 * busy > failures ? "421" : "refused";
}

static void write_failures(const struct learn_host *h, struct buf *to)
{
	int64_t refused = 0;
	bool any = false;
	for (int i = 0; i < h->nspan; i++) {
		const struct learn_span *s = &h->span[i];
		if (!learn_is_outage(s)) {
			refused += s->failures;
			continue;
		}
		any = true;
		buf_printf(to, "\toutages += {\"%" PRId64 "ms..%" PRId64 "ms\"}\n", s->from_ms,
			   s->to_ms > s->from_ms ? s->to_ms : s->from_ms + 1);
	}
	if (any)
		buf_printf(to, "\toutage = \"%s\"\n", kind_of_outage(h));
	write_part("refused", refused, h->connections + refused, to);
}

static bool has_host(const struct learn_site *s, const struct learn_host *h)
{
	for (const struct learn_mx *mx = s->mx; mx; mx = mx->next)
		if (mx->host == h)
			return true;
	return false;
}

/* In the unit in which rounding costs little. */
static void write_rate(double rate, struct buf *to)
{
	bool by_minute = rate * 60 >= 100;
	buf_printf(to, "\tbucket = \"%" PRId64 "/%s\"\n",
		   (int64_t)(rate * (by_minute ? 60 : 3600) + 0.5), by_minute ? "m" : "h");
}

/* All hosts of a site share what the first of them lets through. */
static void write_bucket(const struct learn *l, const struct learn_host *h, struct buf *to)
{
	struct learn_bucket b;
	struct learn_site *s = l->sites;
	while (s && (!s->refusal || !has_host(s, h) || !learn_site_bucket(s, &b)))
		s = s->hh.next;
	if (!s)
		return;
	write_rate(b.rate, to);
	buf_printf(to, "\tbucket_room = %" PRId64 "\n\tbucket_of = \"%s\"\n", b.room,
		   s->mx->host->address);
}

static void write_host(const struct learn *l, struct learn_host *h, struct buf *to)
{
	buf_printf(to, "host \"%s\" {\n\tdepth = 2\n", h->address);
	write_times(h, to);
	write_limits(h, to);
	write_bucket(l, h, to);
	write_failures(h, to);
	write_part("deferred", h->deferred, h->replies, to);
	write_part("failed", h->failed, h->replies, to);
	/* Half of those that break are in doubt. */
	write_part("broken", 2 * h->in_doubt, h->replies + h->in_doubt, to);
	buf_puts(to, "}\n");
}

void learn_write(struct learn *l, struct buf *to)
{
	const struct learn_site *rest = site_of_rest(l);
	write_head(l, to);
	write_transports(l, to);
	for (const struct learn_domain *d = l->domains; d; d = d->hh.next)
		if (is_written(d))
			write_route(d, to);
	write_arrival(l, to);
	for (const struct learn_site *s = l->sites; s; s = s->hh.next)
		write_site(l, s, s == rest, to);
	for (struct learn_host *h = l->hosts; h; h = h->hh.next)
		write_host(l, h, to);
}
