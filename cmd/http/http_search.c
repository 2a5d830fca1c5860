/* SPDX-License-Identifier: ISC */
/* /api/search: a message by its id; or mail to or from a domain, or an address, and where it goes. The
 * index knows domains; whether an address is meant stands in the envelopes, of which the oldest are read. */
#include "base/clock.h"
#include "base/log.h"
#include "base/mailaddr.h"
#include "base/mem.h"
#include "cmd/text/explain_print.h"
#include "cmd/http/http_sampling.h"
#include "cmd/http/page_print.h"
#include "qmgr/explain.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { SHOWN = 50, SITES = 20, READ_DOMAIN = 50, READ_ADDRESS = 2000 };

struct search {
	struct http_sampling sampling; /* first */
	char *words;
	const char *address; /* in words, or NULL */
	const char *domain;  /* likewise */
	struct buf lines;
};

static void free_search(void *own)
{
	struct search *q = own;
	http_sampling_fini(&q->sampling);
	buf_fini(&q->lines);
	free(q->words);
	free(q);
}

static bool concerns(const struct search *q, const struct envelope *e)
{
	if (!q->address || strcasecmp(e->sender, q->address) == 0)
		return true;
	for (uint32_t i = 0; i < e->nrcpt; i++)
		if (strcasecmp(e->rcpt[i].address, q->address) == 0)
			return true;
	return false;
}

static void print(struct http_look *k)
{
	const struct search *q = k->own;
	const struct sample *s = q->sampling.sample;
	int found = 0;
	buf_puts(&k->out, ",\"messages\":[");
	for (int i = 0; i < s->n; i++) {
		struct spool_row row = {.queue = s->row[i].queue, .envelope = s->row[i].envelope};
		if (!concerns(q, row.envelope) || ++found > SHOWN)
			continue;
		buf_puts(&k->out, found > 1 ? "," : "");
		page_print_message(&k->out, &row);
	}
	buf_printf(&k->out,
		   "],\"found\":%" PRId64 ",\"domain_messages\":%" PRId64
		   ",\"read\":%d,\"cut\":%s}\n",
		   q->address ? found : s->fit, s->fit, s->n, s->cut ? "true" : "false");
	http_look_done(k, MHD_HTTP_OK);
}

/* Where mail for the domain goes, and what holds it there. */
static void take_sites(struct asker *asker, struct note *note)
{
	struct http_look *k = (struct http_look *)asker;
	struct explain_question *x = (struct explain_question *)note;
	if (http_look_back(k)) {
		struct search *q = k->own;
		struct explain_question first = *x;
		if (first.nrow > SITES)
			first.nrow = SITES;
		buf_puts(&k->out, ",\"sites\":[");
		explain_print(&q->lines, &first, true, clock_wall_ms());
		page_print_lines(&k->out, buf_cstr(&q->lines));
		buf_puts(&k->out, "]");
		http_sampling_ask(k);
	}
	explain_question_free(&x);
}

static void begin(struct http_look *k)
{
	struct search *q = k->own;
	buf_puts(&k->out, "{\"words\":");
	log_json_string(&k->out, q->words);
	buf_printf(&k->out, ",\"kind\":\"%s\"", q->address ? "address" : "domain");
	q->sampling = (struct http_sampling){.sample = sample_new(), .sampled = print};
	sample_want_domain(q->sampling.sample, q->domain);
	q->sampling.sample->senders = true;
	q->sampling.sample->dense = 0;
	q->sampling.sample->most = q->address ? READ_ADDRESS : READ_DOMAIN;
	struct explain_question *x = explain_question_new(0, q->domain, k->http->loop, k);
	http_look_post(k, k->http->qmgr, &x->note, take_sites);
}

void http_ask_search(struct http_ask *a)
{
	static const struct look_kind kind = {begin, free_search};
	const char *words = http_ask_value(a, "q");
	const char *at = strrchr(words, '@');
	if (!*words || (at && !at[1])) {
		http_ask_refuse(a, MHD_HTTP_BAD_REQUEST, "q: an address or a domain is wanted");
		return;
	}
	struct search *q = mem_zalloc(sizeof *q);
	q->words = mem_strdup(words);
	q->domain = at ? mailaddr_domain(q->words) : q->words;
	q->address = at && at > words ? q->words : NULL;
	char *key = mem_printf("search %s", words);
	http_look_want(a, key, &kind, q);
	free(key);
}
