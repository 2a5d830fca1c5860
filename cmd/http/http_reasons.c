/* SPDX-License-Identifier: ISC */
/* /api/reasons: of a destination qmgr is asked first which it is; then the queue for some of its mail,
 * part by part; then qmgr for what it is working on. */
#include "base/clock.h"
#include "base/ident.h"
#include "base/mem.h"
#include "base/name_key.h"
#include "cmd/http/http_sampling.h"
#include "cmd/text/reasons.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

enum {
	SHOWN = 10,
	READ_MOST = 1000, /* envelopes */
	FIRST_ALL = 16,
	DENSE_ALL = 4,
	FIRST_SITE = 64,
	DENSE_SITE = 8,
	EXPLAINED = 10, /* messages that are being worked on */
};

struct reasons_question {
	struct http_sampling sampling; /* first */
	char *site, *transport, *key;  /* or NULL: of all */
	struct reasons_filter filter;
	struct reasons *reasons;
	int next, explained; /* row */
};

static void free_names(char **name, int n)
{
	for (int i = 0; i < n; i++)
		free(name[i]);
	free(name);
}

static void free_question(void *own)
{
	struct reasons_question *q = own;
	free(q->site);
	free(q->transport);
	free(q->key);
	free_names(q->filter.peer, q->filter.npeer);
	free_names(q->filter.domain, q->filter.ndomain);
	http_sampling_fini(&q->sampling);
	reasons_free(&q->reasons);
	free(q);
}

/* The oldest message deferred for a site. */
struct oldest {
	int64_t arrived_ms; /* 0: none was read */
	uint64_t id;
};

static void put_oldest(struct buf *to, const struct sample *sample)
{
	struct oldest *of = mem_zalloc((SPOOL_SITE_MAX + 1) * sizeof *of);
	const char *between = "";
	for (int i = 0; i < sample->n; i++) {
		const struct envelope *e = sample->row[i].envelope;
		assert(sample->row[i].site <= SPOOL_SITE_MAX);
		struct oldest *o = &of[sample->row[i].site];
		if (o->arrived_ms == 0 || e->arrived_ms < o->arrived_ms)
			*o = (struct oldest){e->arrived_ms, e->id};
	}
	buf_puts(to, ",\"oldest\":[");
	for (int i = 1; i <= SPOOL_SITE_MAX; i++) {
		char id[IDENT_TEXT];
		if (of[i].arrived_ms == 0)
			continue;
		buf_printf(to, "%s{\"number\":%d,\"arrived_ms\":%" PRId64 ",\"id\":\"%s\"}",
			   between, i, of[i].arrived_ms, ident_text(of[i].id, id));
		between = ",";
	}
	buf_puts(to, "]");
	free(of);
}

static void print_reasons(struct http_look *k, struct reasons_question *q)
{
	buf_printf(&k->out,
		   "{\"at_ms\":%" PRId64 ",\"messages\":%" PRId64
		   ",\"read\":%d,\"cut\":%s,\"reasons\":",
		   clock_wall_ms(), q->sampling.sample->fit, q->sampling.sample->n,
		   q->sampling.sample->cut ? "true" : "false");
	reasons_print(&k->out, q->reasons, q->site ? REASONS_MOST : REASONS_OLDEST, SHOWN);
	if (!q->site)
		put_oldest(&k->out, q->sampling.sample);
	buf_puts(&k->out, "}\n");
	http_look_done(k, MHD_HTTP_OK);
}

/* --- the messages that were read */

static void add_rows(struct http_look *);

static void take_why(struct asker *asker, struct note *note)
{
	struct http_look *k = (struct http_look *)asker;
	struct explain_question *x = (struct explain_question *)note;
	if (http_look_back(k)) {
		struct reasons_question *q = k->own;
		assert(q->next < q->sampling.sample->n);
		reasons_add_active(q->reasons, &q->sampling.sample->row[q->next++], x,
				   clock_wall_ms());
		add_rows(k);
	}
	explain_question_free(&x);
}

static void add_rows(struct http_look *k)
{
	struct reasons_question *q = k->own;
	for (; q->next < q->sampling.sample->n; q->next++) {
		const struct sample_row *row = &q->sampling.sample->row[q->next];
		if (row->queue == SPOOL_ACTIVE && !q->site && q->explained < EXPLAINED) {
			q->explained++;
			http_look_post(
				k, k->http->qmgr,
				&explain_question_new(row->envelope->id, NULL, k->http->loop, k)
					 ->note,
				take_why);
			return;
		}
		reasons_add(q->reasons, row, q->site ? &q->filter : NULL);
	}
	print_reasons(k, q);
}

/* --- the destination */

/* Takes the name over. */
static void add_name(char ***to, int *n, char *name)
{
	*to = mem_realloc(*to, ((size_t)*n + 1) * sizeof **to);
	(*to)[(*n)++] = name;
}

static void learn_peers(struct http_look *k, const struct dest_site *s)
{
	struct reasons_question *q = k->own;
	for (int i = 0; i < s->nhost; i++)
		add_name(&q->filter.peer, &q->filter.npeer, mem_strdup(s->host[i].peer));
	for (int i = 0; !s->domains_seen && i < s->ndomain; i++)
		add_name(&q->filter.domain, &q->filter.ndomain, name_key(s->domain[i]));
	reasons_filter_sort(&q->filter);
}

static void begin_reasons(struct http_look *k)
{
	struct reasons_question *q = k->own;
	q->reasons = reasons_new();
	q->sampling = (struct http_sampling){
		.sample = sample_new(), .sampled = add_rows, .found = learn_peers};
	q->sampling.sample->apart = !q->site;
	q->sampling.sample->first = q->site ? FIRST_SITE : FIRST_ALL;
	q->sampling.sample->dense = q->site ? DENSE_SITE : DENSE_ALL;
	q->sampling.sample->most = READ_MOST;
	if (q->site)
		http_sampling_of_site(k, q->site, q->transport, q->key);
	else
		http_sampling_ask(k);
}

void http_ask_reasons(struct http_ask *a)
{
	static const struct look_kind kind = {begin_reasons, free_question};
	const char *site = http_ask_value(a, "site"), *transport = http_ask_value(a, "transport");
	const char *key = http_ask_value(a, "key");
	struct reasons_question *q = mem_zalloc(sizeof *q);
	char *asked = mem_printf("reasons %s\n%s\n%s", site, transport, key);
	q->site = *site ? mem_strdup(site) : NULL;
	q->transport = mem_strdup(transport);
	q->key = mem_strdup(key);
	http_look_want(a, asked, &kind, q);
	free(asked);
}
