/* SPDX-License-Identifier: ISC */
/* Names: domains to the hosts of their sites, after a while. */
#include "sim/stage.h"

#include "base/mem.h"

#include <stdlib.h>

struct question {
	struct stage *stage;
	struct resolve *resolve;
	struct list link;
	struct timer timer;
};

static void add_host(struct resolve *r, const struct scenario_host *h, uint16_t preference)
{
	r->host = mem_realloc(r->host, (size_t)(r->nhost + 1) * sizeof *r->host);
	struct resolve_host *to = &r->host[r->nhost++];
	*to = (struct resolve_host){
		.name = mem_strdup(h->title), .preference = preference, .naddress = 1};
	to->address[0] = h->address;
}

static void fail(struct resolve *r, const char *dsn)
{
	r->failure = verdict_new(dsn[0] == '5' ? VERDICT_FAILED : VERDICT_DEFERRED, 0, dsn, NULL,
				 cause_text(CAUSE_NAMES));
}

static void find(const struct scenario *s, struct resolve *r)
{
	const struct scenario_site *site = NULL;
	if (r->kind == RESOLVE_MX)
		site = scenario_find_site(s, r->name);
	int host = scenario_find_host(s, r->name);
	for (int i = 0; site && i < site->nmx; i++)
		add_host(r, &s->host[site->to[i].host], site->to[i].preference);
	if (site && *site->failure)
		fail(r, site->failure);
	else if (!site && host >= 0)
		add_host(r, &s->host[host], 0);
	else if (!site)
		fail(r, "5.1.2");
}

static void on_answer(void *owner)
{
	struct question *question = owner;
	struct resolve *r = question->resolve;
	find(question->stage->scenario, r);
	r->note.type = RESOLVE_ANSWER;
	stage_post(question->stage, &r->note);
	list_remove(&question->link);
	free(question);
}

void model_dns_note(void *context, struct note *note)
{
	struct stage *st = context;
	struct question *question = mem_zalloc(sizeof *question);
	question->stage = st;
	question->resolve = (struct resolve *)note;
	timer_init(&question->timer, on_answer, question);
	list_append(&st->questions, &question->link);
	stage_after(st, &question->timer, stage_us(st->scenario->simulation.dns_latency));
}

void model_dns_fini(struct stage *st)
{
	list_each (link, tmp, &st->questions) {
		struct question *question = list_entry(link, struct question, link);
		resolve_free(&question->resolve);
		free(question);
	}
}
