/* SPDX-License-Identifier: ISC */
/* Names: domains to the hosts of their sites, after a while. */
#include "sim/stage.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

struct question {
	struct stage *stage;
	struct resolve *resolve;
	struct list link;
	struct timer timer;
};

/* Hosts of one name and preference are the addresses of one. */
static void add_host(struct resolve *r, const char *name, const struct scenario_host *h,
		     uint16_t preference)
{
	for (int i = 0; i < r->nhost; i++) {
		struct resolve_host *to = &r->host[i];
		if (to->preference == preference && strcmp(to->name, name) == 0 &&
		    to->naddress < RESOLVE_ADDRESSES_MAX) {
			to->address[to->naddress++] = h->address;
			return;
		}
	}
	r->host = mem_realloc(r->host, (size_t)(r->nhost + 1) * sizeof *r->host);
	struct resolve_host *to = &r->host[r->nhost++];
	*to = (struct resolve_host){
		.name = mem_strdup(name), .preference = preference, .naddress = 1};
	to->address[0] = h->address;
}

/* One name for each preference is made from the domain and the site where those are its own. */
static void add_mx(struct resolve *r, const struct scenario *s, const struct scenario_site *site)
{
	for (int i = 0; i < site->nmx; i++) {
		const struct scenario_mx *mx = &site->to[i];
		const struct scenario_host *h = &s->host[mx->host];
		char *own = mem_printf("%s.%d.%s", r->name, mx->preference, site->title);
		const char *called = mx->name ? mx->name : h->title;
		add_host(r, site->own_names ? own : called, h, mx->preference);
		free(own);
	}
}

static void set_failure(struct resolve *r, const char *dsn)
{
	r->failure = verdict_new(dsn[0] == '5' ? VERDICT_FAILED : VERDICT_DEFERRED, 0, dsn, NULL,
				 cause_text(CAUSE_NAMES));
}

static void resolve_name(const struct scenario *s, struct resolve *r)
{
	const struct scenario_site *site = NULL;
	if (r->kind == RESOLVE_MX)
		site = scenario_find_site(s, r->name);
	int host = scenario_find_host(s, r->name);
	if (site)
		add_mx(r, s, site);
	if (site && *site->failure)
		set_failure(r, site->failure);
	else if (!site && host >= 0)
		add_host(r, s->host[host].title, &s->host[host], 0);
	else if (!site)
		set_failure(r, "5.1.2");
}

static void on_answer(void *owner)
{
	struct question *question = owner;
	struct resolve *r = question->resolve;
	resolve_name(question->stage->scenario, r);
	r->heard = !r->failure || r->failure->class == VERDICT_FAILED;
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
	list_each_entry (struct question, question, link, &st->questions) {
		resolve_free(&question->resolve);
		free(question);
	}
}
