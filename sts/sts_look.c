/* SPDX-License-Identifier: ISC */
#include "sts/sts_look.h"

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/tls_result.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static void fetch_next(struct sts *);

/* RFC 8460 4.3.2.2: with the policy that holds all the same, or none. */
static void report_failure(const struct sts_domain *d)
{
	static const enum tls_result_type types[] = {
		[STS_FETCH_ERROR] = TLS_RESULT_STS_FETCH,
		[STS_UNTRUSTED] = TLS_RESULT_STS_UNTRUSTED,
		[STS_INVALID] = TLS_RESULT_STS_INVALID,
	};
	const struct sts *s = d->sts;
	assert(d->outcome >= STS_FETCH_ERROR && d->outcome <= STS_INVALID);
	if (!s->edges.reports || !s->conf->tls_report.enabled)
		return;
	bool holds = d->policy && clock_wall_ms() < d->ends_ms;
	struct tls_subject *of =
		tls_subject_new(s->edges.reports, d->name, holds ? d->policy : NULL);
	loop_post(of->to, &tls_result_new(of, types[d->outcome], d->why)->note);
	tls_subject_unref(of);
}

static void log_outcome(const struct sts_domain *d)
{
	bool fetched = d->outcome == STS_FETCHED;
	if (!fetched && d->outcome < STS_FETCH_ERROR)
		return;
	if (!fetched)
		report_failure(d);
	metric_cell_add(metric_cell(FAMILY_sts_fetches, sts_outcome_word(d->outcome), NULL), 1);
	log_event(fetched ? LOG_LEVEL_INFO : LOG_LEVEL_WARNING, "mta_sts", "domain", d->name,
		  "result", sts_outcome_word(d->outcome), "id", d->record, "mode",
		  d->policy ? sts_mode_word(d->policy->mode) : NULL, "max_age",
		  fetched ? log_number(d->policy->max_age_s) : NULL, "reason", d->why, NULL);
}

static void end_fetch(struct sts_domain *d)
{
	struct sts *s = d->sts;
	bool slow = !list_empty(&d->in_queue);
	assert(slow ? s->nslow > 0 : s->fetching > 0);
	timer_stop(&s->loop->timers, &d->slow);
	https_drop(&d->fetch);
	s->fetching -= !slow;
	s->nslow -= slow;
	if (slow)
		descriptors_give(DESCRIPTORS_HOSTS);
}

/* why: a clause that is taken; or NULL. to: LATE while dns owes an answer, else NONE. */
static void end_look(struct sts_domain *d, enum sts_look to, enum sts_outcome outcome, char *why)
{
	struct sts *s = d->sts;
	assert(d->look != STS_LOOK_NONE && d->look != STS_LOOK_LATE);
	assert(outcome != STS_FETCHED || (d->policy && !why));
	timer_stop(&s->loop->timers, &d->limit);
	if (d->look == STS_LOOK_FETCHING)
		end_fetch(d);
	list_remove(&d->in_queue);
	mem_free(&d->at);
	free(d->why);
	d->why = why;
	d->outcome = outcome;
	sts_domain_move(d, to);
	log_outcome(d);
	sts_looked(d);
	fetch_next(s);
}

static void on_limit(void *owner)
{
	struct sts_domain *d = owner;
	bool record = d->look == STS_LOOK_RECORD;
	bool owed = record || d->look == STS_LOOK_ADDRESS;
	end_look(d, owed ? STS_LOOK_LATE : STS_LOOK_NONE,
		 record ? STS_RECORD_UNKNOWN : STS_FETCH_ERROR, mem_strdup("no answer in time"));
}

/* Beyond its words the media type may have parameters. */
static bool is_plain_text(const char *type)
{
	static const char wanted[] = "text/plain";
	size_t len = strlen(wanted);
	return strncasecmp(type, wanted, len) == 0 && strchr(" \t;", type[len]);
}

static enum sts_outcome judge_answer(const struct https_answer *a, struct sts_policy **p,
				     struct buf *why)
{
	if (a->error) {
		buf_puts(why, a->error);
		return a->untrusted ? STS_UNTRUSTED : STS_FETCH_ERROR;
	}
	if (a->status != 200) {
		buf_printf(why, "it answers %ld", a->status);
		return STS_FETCH_ERROR;
	}
	if (!is_plain_text(a->content_type)) {
		/* A type may have 100 kB, and is kept as long as the domain is known. */
		buf_printf(why, "its type is %.100s, not text/plain",
			   *a->content_type ? a->content_type : "not given");
		return STS_INVALID;
	}
	*p = sts_policy_parse(a->body, a->len, why);
	return *p ? STS_FETCHED : STS_INVALID;
}

static void install_policy(struct sts_domain *d, struct sts_policy *p)
{
	sts_table_set(&d->sts->table, d, p);
	memcpy(d->id, d->record, sizeof d->id);
	d->fetched_ms = clock_wall_ms();
	d->ends_ms = d->fetched_ms + p->max_age_s * 1000;
	d->asked = false;
}

static void on_fetched(void *owner, const struct https_answer *a)
{
	struct sts_domain *d = owner;
	struct buf why = {0};
	struct sts_policy *p = NULL;
	assert(d->look == STS_LOOK_FETCHING && loop_is_ours(d->sts->loop));
	enum sts_outcome outcome = judge_answer(a, &p, &why);
	d->fetch = NULL; /* gone by itself */
	if (p)
		install_policy(d, p);
	end_look(d, STS_LOOK_NONE, outcome, p ? NULL : mem_strdup(buf_cstr(&why)));
	buf_fini(&why);
}

/* Others have its place, and its descriptor is no longer one of the few that are kept for policies. */
static void on_slow(void *owner)
{
	struct sts_domain *d = owner;
	struct sts *s = d->sts;
	assert(d->look == STS_LOOK_FETCHING && s->fetching > 0 && list_empty(&d->in_queue));
	s->fetching--;
	s->nslow++;
	descriptors_count(DESCRIPTORS_HOSTS);
	list_append(&s->slow, &d->in_queue);
	if (s->nslow > STS_FETCHES_SLOW_MAX || !descriptors_room(DESCRIPTORS_HOSTS))
		end_look(list_entry(list_first(&s->slow), struct sts_domain, in_queue),
			 STS_LOOK_NONE, STS_FETCH_ERROR,
			 mem_strdup("no answer yet, and too many others that do not answer"));
	else
		fetch_next(s);
}

static void fetch_policy(struct sts_domain *d)
{
	struct sts *s = d->sts;
	char *url = mem_printf("https://mta-sts.%s:%d/.well-known/mta-sts.txt", d->name,
			       (int)s->conf->tls.mta_sts_port);
	struct https_order order = {.url = url,
				    .ca = s->conf->tls.ca,
				    .at = d->at,
				    .timeout_ms = s->conf->tls.mta_sts_timeout};
	sts_domain_move(d, STS_LOOK_FETCHING);
	assert(d->at && !d->fetch && list_empty(&d->in_queue));
	assert(s->fetching < STS_FETCHES_MAX);
	s->fetching++;
	timer_init(&d->slow, on_slow, d);
	loop_timer_in(s->loop, &d->slow, STS_FETCH_SLOW_MS);
	d->fetch = https_begin(s->https, &order, on_fetched, d);
	free(url);
}

static void fetch_next(struct sts *s)
{
	struct list *first;
	while (s->https && s->fetching < STS_FETCHES_MAX && (first = list_first(&s->queue))) {
		list_remove(first);
		fetch_policy(list_entry(first, struct sts_domain, in_queue));
	}
}

/* As libcurl wants it. */
static char *place_of(const struct sts_domain *d, const struct resolve *r)
{
	struct buf b = {0};
	buf_printf(&b, "mta-sts.%s:%d:", d->name, (int)d->sts->conf->tls.mta_sts_port);
	https_put_addresses(&b, r);
	return buf_steal(&b, NULL);
}

static void ask_dns(struct sts_domain *d, enum resolve_kind kind, const char *label)
{
	struct sts *s = d->sts;
	char *name = mem_printf("%s.%s", label, d->name);
	struct resolve *r = resolve_new(kind, name, s->loop, d);
	r->line = d->waiting ? ((struct sts_ask *)d->waiting)->line : 0;
	free(name);
	s->edges.to_dns(s->edges.context, &r->note);
}

bool sts_look_due(const struct sts_domain *d)
{
	return d->policy && clock_wall_ms() >= d->ends_ms - (d->ends_ms - d->fetched_ms) / 4;
}

/* RFC 8461 3.1: of several that are its version's, none counts. */
static enum sts_outcome read_record(struct sts_domain *d, const struct resolve *r)
{
	int n = 0;
	d->record[0] = '\0';
	for (int i = 0; i < r->ntxt; i++) {
		char id[STS_ID_SIZE];
		if (!sts_record_parse(r->txt[i], id))
			continue;
		n++;
		memcpy(d->record, id, sizeof id);
	}
	if (n == 0)
		return r->failure ? STS_RECORD_UNKNOWN : STS_NO_RECORD;
	if (n > 1 || !*d->record)
		return STS_BAD_RECORD;
	bool same = d->policy && strcmp(d->id, d->record) == 0 && !sts_look_due(d);
	return same ? STS_UNCHANGED : STS_FETCHED;
}

static void have_record(struct sts_domain *d, const struct resolve *r)
{
	enum sts_outcome outcome = read_record(d, r);
	const char *why = r->failure ? r->failure->text : NULL;
	if (outcome == STS_FETCHED) {
		sts_domain_move(d, STS_LOOK_ADDRESS);
		ask_dns(d, RESOLVE_HOST, "mta-sts");
		return;
	}
	end_look(d, STS_LOOK_NONE, outcome, mem_strdup(why));
}

static void have_address(struct sts_domain *d, const struct resolve *r)
{
	if (r->nhost == 0) {
		end_look(d, STS_LOOK_NONE, STS_FETCH_ERROR, mem_strdup(r->failure->text));
		return;
	}
	assert(!d->at);
	d->at = place_of(d, r);
	sts_domain_move(d, STS_LOOK_QUEUED);
	list_append(&d->sts->queue, &d->in_queue);
	fetch_next(d->sts);
}

void sts_look_answered(struct resolve *r)
{
	struct sts_domain *d = r->owner;
	assert(loop_is_ours(d->sts->loop));
	if (d->look == STS_LOOK_LATE)
		sts_domain_move(d, STS_LOOK_NONE);
	else if (d->look == STS_LOOK_RECORD)
		have_record(d, r);
	else {
		assert(d->look == STS_LOOK_ADDRESS);
		have_address(d, r);
	}
	resolve_free(&r);
}

void sts_look_begin(struct sts_domain *d)
{
	struct sts *s = d->sts;
	sts_domain_move(d, STS_LOOK_RECORD);
	d->look_ms = clock_steady_ms() + s->conf->tls.mta_sts_interval;
	assert(!timer_active(&d->limit));
	timer_init(&d->limit, on_limit, d);
	loop_timer_in(s->loop, &d->limit, s->conf->tls.mta_sts_timeout);
	ask_dns(d, RESOLVE_TXT, "_mta-sts");
}

void sts_look_drop(struct sts_domain *d)
{
	timer_stop(&d->sts->loop->timers, &d->limit);
	if (d->look == STS_LOOK_FETCHING)
		end_fetch(d);
	list_remove(&d->in_queue);
	d->look = STS_LOOK_NONE;
}
