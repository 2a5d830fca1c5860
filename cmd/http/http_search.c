/* SPDX-License-Identifier: ISC */
/* /api/search: mail to or from a domain, or an address, and where it goes; mail in a queue, for a destination, of a flow or a login. Fifty
 * a page, the oldest first, and by what reason those wait that were read. The index knows queues, domains and destinations; whose mail it is stands in the
 * envelopes, of which so many are read for a page. */
#include "base/clock.h"
#include "base/ident.h"
#include "base/mailaddr.h"
#include "base/mem.h"
#include "base/name_key.h"
#include "base/users.h"
#include "cmd/http/http_sampling.h"
#include "cmd/http/page_print.h"
#include "cmd/text/explain_print.h"
#include "cmd/text/json_put.h"
#include "cmd/text/reasons.h"
#include "qmgr/explain.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 50, SITES = 20, GROUPS = 6, READ_INDEXED = 500, READ_NAMED = 2000 };

struct search {
	struct http_sampling sampling; /* first */
	char *words;
	char *address;	    /* that the words are, as name_key.h has it; or NULL */
	const char *domain; /* in words, or NULL */
	char *site, *transport, *key;
	char *flow, *login;		  /* "": any; likewise of the three before */
	char folded[USERS_LOGIN_MAX + 1]; /* the login as envelopes have it; "": it is none */
	unsigned queues;		  /* 0: any */
	uint64_t after;			  /* the last message of the page before */
	struct buf lines;
};

static void free_search(void *own)
{
	struct search *q = own;
	http_sampling_fini(&q->sampling);
	buf_fini(&q->lines);
	free(q->words);
	free(q->address);
	free(q->site);
	free(q->transport);
	free(q->key);
	free(q->flow);
	free(q->login);
	free(q);
}

/* --- which messages */

static bool has_address(const struct envelope *e, const char *key)
{
	if (name_key_fits(key, e->sender))
		return true;
	for (uint32_t i = 0; i < e->nrcpt; i++)
		if (name_key_fits(key, e->rcpt[i].address))
			return true;
	return false;
}

static bool is_of_login(const struct search *q, const struct envelope *e)
{
	return e->user && (strcmp(e->user, q->login) == 0 || strcmp(e->user, q->folded) == 0);
}

static bool is_wanted(const struct search *q, const struct envelope *e)
{
	if (q->address && !has_address(e, q->address))
		return false;
	if (*q->flow && strcmp(envelope_flow(e), q->flow) != 0)
		return false;
	return !*q->login || is_of_login(q, e);
}

/* The envelope alone can say. */
static bool is_named(const struct search *q)
{
	return q->address || *q->flow || *q->login;
}

/* --- out */

static void put_message(struct http_look *k, const struct sample_row *row)
{
	struct spool_row one = {.queue = row->queue, .envelope = row->envelope};
	page_print_message(&k->out, &one);
	buf_puts(&k->out, ",");
}

static void put_next(struct buf *to, uint64_t after)
{
	char id[IDENT_TEXT];
	json_put_text(to, "next", after ? ident_text(after, id) : NULL);
}

static void print_found(struct http_look *k)
{
	struct search *q = k->own;
	const struct sample *s = q->sampling.sample;
	struct reasons *groups = reasons_new();
	uint64_t last_shown = 0;
	int found = 0;
	json_put_lines(&k->out, "sites", buf_cstr(&q->lines));
	buf_puts(&k->out, "\"messages\":[");
	for (int i = 0; i < s->n; i++) {
		const struct sample_row *row = &s->row[i];
		if (!is_wanted(q, row->envelope))
			continue;
		reasons_add(groups, row, NULL);
		if (++found > SHOWN)
			continue;
		put_message(k, row);
		last_shown = row->envelope->id;
	}
	json_put_end(&k->out, ']');
	buf_puts(&k->out, "\"reasons\":");
	reasons_print(&k->out, groups, REASONS_MOST, GROUPS);
	buf_puts(&k->out, ",");
	reasons_free(&groups);
	put_next(&k->out, found > SHOWN ? last_shown : s->cut ? q->sampling.after : 0);
	json_put_number(&k->out, "found", is_named(q) ? found : s->fit);
	json_put_number(&k->out, "read", s->n);
	json_put_flag(&k->out, "cut", s->cut);
	json_put_line(&k->out);
	http_look_done(k, MHD_HTTP_OK);
}

/* --- where it goes */

/* Where mail for the domain goes, and what holds it there. */
static void take_domain_sites(struct asker *asker, struct note *note)
{
	struct http_look *k = (struct http_look *)asker;
	struct explain_question *x = (struct explain_question *)note;
	if (http_look_back(k)) {
		struct search *q = k->own;
		struct explain_question first = *x;
		if (first.nrow > SITES)
			first.nrow = SITES;
		explain_print(&q->lines, &first, true, clock_wall_ms());
		http_sampling_ask(k);
	}
	explain_question_free(&x);
}

static void ask_sample(struct http_look *k, struct search *q)
{
	struct sample *s = sample_new();
	q->sampling =
		(struct http_sampling){.sample = s, .after = q->after, .sampled = print_found};
	s->senders = q->domain;
	s->dense = 0;
	s->queues = q->queues;
	s->most = is_named(q) ? READ_NAMED : READ_INDEXED;
	if (q->domain) {
		sample_want_domain(s, q->domain);
		http_look_post(k, k->http->qmgr,
			       &explain_question_new(0, q->domain, k->http->loop, k)->note,
			       take_domain_sites);
	} else if (*q->site) {
		http_sampling_of_site(k, q->site, q->transport, q->key);
	} else {
		http_sampling_ask(k);
	}
}

static void begin_search(struct http_look *k)
{
	struct search *q = k->own;
	const char *kind = q->address ? "address" : q->domain ? "domain" : "other";
	buf_puts(&k->out, "{");
	json_put_text(&k->out, "words", q->words);
	json_put_text(&k->out, "kind", kind);
	ask_sample(k, q);
}

/* --- what is asked */

static bool read_queue(const char *name, unsigned *queues)
{
	*queues = spool_queue_bit(name, strlen(name));
	return !*name || *queues;
}

/* NULL: the fault is in why. */
static struct search *search_of(const struct http_ask *a, const char **why)
{
	const char *words = http_ask_value(a, "q"), *after = http_ask_value(a, "after");
	const char *at = strrchr(words, '@');
	struct search *q = mem_zalloc(sizeof *q);
	q->words = mem_strdup(words);
	q->domain = !*words ? NULL : at ? mailaddr_domain(q->words) : q->words;
	q->address = at && at > words ? name_key(words) : NULL;
	q->site = mem_strdup(http_ask_value(a, "site"));
	q->transport = mem_strdup(http_ask_value(a, "transport"));
	q->key = mem_strdup(http_ask_value(a, "key"));
	q->flow = mem_strdup(http_ask_value(a, "flow"));
	q->login = mem_strdup(http_ask_value(a, "login"));
	if (!users_folded(q->login, q->folded))
		q->folded[0] = '\0';
	*why = NULL;
	if (!read_queue(http_ask_value(a, "queue"), &q->queues))
		*why = "queue: one of incoming, active, deferred, hold";
	else if (*after && !ident_parse(after, &q->after))
		*why = "after: the id of a message";
	else if ((at && !at[1]) || (!*words && !q->queues && !*q->site && !*q->flow && !*q->login))
		*why = "q: an address or a domain is wanted; or queue, site, flow, login";
	return q;
}

void http_ask_search(struct http_ask *a)
{
	static const struct look_kind kind = {begin_search, free_search};
	const char *why;
	struct search *q = search_of(a, &why);
	if (why) {
		free_search(q);
		http_ask_refuse(a, MHD_HTTP_BAD_REQUEST, why);
		return;
	}
	char *key = mem_printf("search %s\n%u\n%s\n%s\n%s\n%s\n%s\n%" PRIu64, q->words, q->queues,
			       q->site, q->transport, q->key, q->flow, q->login, q->after);
	http_look_want(a, key, &kind, q);
	free(key);
}
