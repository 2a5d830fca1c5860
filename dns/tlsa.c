/* SPDX-License-Identifier: ISC */
#include "dns/tlsa.h"

#include "base/mem.h"
#include "base/metrics.h"
#include "base/tls_dane.h"
#include "base/verdict.h"
#include "dns/dnsname.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

static void fail_search(struct tlsa_search *s, const char *type, const char *why)
{
	assert(!s->host->unsure && !s->host->dane);
	metrics_add(METRIC_tlsa_failed, 1);
	s->host->unsure = verdict_printf(VERDICT_DEFERRED, 451, "4.4.3", NULL,
					 "look-up of the %s record of %s failed: %s", type, s->at,
					 why ? why : "no answer");
}

static void ask_tlsa(struct tlsa_search *, const char *at);

static void make_dane(struct tlsa_search *s, const struct answer *a)
{
	assert(!s->host->dane && a->security == RESOLVE_SECURE);
	struct resolve_tlsa *all = mem_zalloc((size_t)a->nrecord * sizeof *all);
	for (int i = 0; i < a->nrecord; i++)
		all[i] = a->record[i].tlsa;
	s->host->dane = tls_dane_new(s->at, s->hop, TLSA_HOP_NAMES, all, a->nrecord);
	metrics_add(s->host->dane->nusable > 0 ? METRIC_tlsa_usable : METRIC_tlsa_unusable, 1);
	free(all);
}

static void on_tlsa(struct asker *asker, struct answer *a)
{
	struct tlsa_search *s = (struct tlsa_search *)asker;
	bool more = s->at != s->host->name;
	if (a->status == ANSWER_FAILED) {
		fail_search(s, "TLSA", a->why);
	} else if (a->status == ANSWER_RECORDS && a->security == RESOLVE_SECURE) {
		make_dane(s, a);
	} else if (more) {
		ask_tlsa(s, s->host->name);
		return;
	} else {
		metrics_add(METRIC_tlsa_none, 1);
	}
	s->found(s->owner);
}

static void on_alias(struct asker *asker, struct answer *a)
{
	struct tlsa_search *s = (struct tlsa_search *)asker;
	if (a->status == ANSWER_RECORDS && a->security == RESOLVE_SECURE) {
		ask_tlsa(s, s->host->name);
		return;
	}
	if (a->status == ANSWER_FAILED)
		fail_search(s, "CNAME", a->why);
	else
		metrics_add(METRIC_tlsa_none, 1);
	s->found(s->owner);
}

static void ask_tlsa(struct tlsa_search *s, const char *at)
{
	char text[DNSNAME_SIZE + 16], name[DNSNAME_SIZE];
	s->at = at;
	s->asker.answered = on_tlsa;
	snprintf(text, sizeof text, "_%d._tcp.%s", s->port, at);
	if (dnsname_from_text(text, name)) {
		question_ask(s->questions, name, ANSWER_TLSA, &s->asker);
	} else {
		metrics_add(METRIC_tlsa_none, 1); /* no such name can be */
		s->found(s->owner);
	}
}

bool tlsa_search_begin(struct tlsa_search *s)
{
	const struct resolve_host *h = s->host;
	assert(s->found && !h->dane && !h->unsure);
	list_init(&s->asker.link);
	if (h->security == RESOLVE_SECURE) {
		ask_tlsa(s, h->canonical ? h->canonical : h->name);
		return true;
	}
	if (h->security != RESOLVE_INSECURE || !h->canonical)
		return false;
	s->at = h->name;
	s->asker.answered = on_alias;
	question_ask(s->questions, h->name, ANSWER_CNAME, &s->asker);
	return true;
}

void tlsa_search_withdraw(struct tlsa_search *s)
{
	question_withdraw(&s->asker);
}
