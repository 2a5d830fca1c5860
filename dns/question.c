/* SPDX-License-Identifier: ISC */
#include "dns/question.h"

#include "base/keyed_hash.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "dns/cache.h"
#include "dns/channel.h"
#include "dns/dnsname.h"
#include "dns/dnssec.h"
#include "dns/query.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { WHY_MAX = 300 };

struct question {
	struct channel_query query;
	struct validation validation;
	UT_hash_handle hh;
	struct list link;	/* in one of the lists of struct questions */
	struct list validating; /* in that of those that validators have */
	struct questions *all;
	struct list askers;
	unsigned line;	     /* of the first of them */
	int64_t patience_ms; /* when waiting for a place ends */
	int64_t asked_ms;
	int64_t begun_ms;		/* its first packet; 0: none yet */
	bool lags;			/* of those under way: it has no place */
	enum query_edns edns;		/* of the packet under way */
	int64_t ttl_ms;			/* of the CNAME records followed so far */
	enum resolve_security security; /* likewise */
	int chased;			/* their number */
	char asking[DNSNAME_SIZE];	/* the name asked for now: the last of the CNAME chain */
	struct answer *answer;
	bool known; /* from the cache */
	enum answer_type type;
	size_t keylen;
	char key[2 + DNSNAME_SIZE]; /* the type in two bytes, then the name; NUL behind it */
};

struct questions {
	struct loop *loop;
	struct channel *channel;
	struct dnssec *dnssec;
	struct cache *cache;
	struct question *table; /* those that others may join: all but those answered */
	struct list waiting[QUESTION_LINES], asked, lagging, answered;
	unsigned turn; /* the line that is next */
	int nasked, nlagging;
	struct list validating; /* of both: those that validators have, the first one longest */
	int nvalidating;
	struct timer tick; /* while some wait: when the next one lags, or has waited long enough */
	int64_t patience_ms;
	bool ending;
};

static void on_worked(void *owner)
{
	questions_work(owner);
}

/* Answers that were kept may not be believed any more. */
static void on_changed(void *owner)
{
	struct questions *all = owner;
	cache_clear(all->cache);
	questions_work(all);
}

static void apply_conf(struct questions *all, struct conf *conf, struct channel *before)
{
	const struct conf_dns *dns = &conf->dns;
	all->patience_ms = 2 * dns->timeout * dns->tries;
	cache_bounds(all->cache, dns->maximal_ttl, dns->negative_ttl);
	all->channel = channel_new(all->loop, dns, before, on_worked, all);
	all->dnssec = dnssec_new(all->loop, conf, all->channel, on_changed, all);
}

struct questions *questions_new(struct loop *loop, struct conf *conf)
{
	struct questions *all = mem_zalloc(sizeof *all);
	all->loop = loop;
	all->cache = cache_new(QUESTION_CACHE_MAX);
	for (int i = 0; i < QUESTION_LINES; i++)
		list_init(&all->waiting[i]);
	list_init(&all->asked);
	list_init(&all->lagging);
	list_init(&all->validating);
	list_init(&all->answered);
	timer_init(&all->tick, on_worked, all);
	apply_conf(all, conf, NULL);
	return all;
}

static void settle_question(struct question *q, struct answer *answer)
{
	assert(!q->answer && answer->refs > 0);
	assert(list_empty(&q->validating));
	assert(q->known || answer->refs == 1); /* it is changed */
	if (!q->known && answer->status == ANSWER_FAILED && q->begun_ms > 0)
		answer->late = q->all->loop->now_ms >= q->begun_ms + QUESTION_BRISK_MS;
	q->answer = answer;
	list_move(&q->all->answered, &q->link);
}

/* A packet is under way for it, or a validator has it. */
static void begin_way(struct question *q)
{
	assert(!q->answer && list_empty(&q->validating));
	list_move(&q->all->asked, &q->link);
	q->asked_ms = q->all->loop->now_ms;
	if (q->begun_ms == 0)
		q->begun_ms = q->asked_ms;
	q->lags = false;
	q->all->nasked++;
}

static void end_way(struct question *q)
{
	int *n = q->lags ? &q->all->nlagging : &q->all->nasked;
	assert(*n > 0);
	(*n)--;
}

static void let_lag(struct question *q)
{
	assert(!q->lags);
	end_way(q);
	q->lags = true;
	q->all->nlagging++;
	list_move(&q->all->lagging, &q->link);
}

/* Send the packet for q->asking. The reply may come before this returns. */
static void send_packet(struct question *q, enum query_edns edns)
{
	uint16_t id = 0;
	size_t size;
	q->edns = edns;
	if (getrandom(&id, sizeof id, 0) != (ssize_t)sizeof id)
		abort(); /* Ids that can be guessed would let anybody answer. */
	uint8_t *bytes = query_build(q->asking, q->type, edns, id, &size);
	if (!bytes) {
		settle_question(q, answer_failed("the question cannot be asked"));
		return;
	}
	begin_way(q);
	channel_send(q->all->channel, bytes, size, &q->query);
	free(bytes);
}

/* Not at once: whoever brings the answer may be in the midst of its work. */
static void ask_again(struct question *q)
{
	assert(!q->answer && list_empty(&q->validating) && !q->all->ending);
	list_move(&q->all->waiting[q->line], &q->link);
}

static bool ask_on(struct question *q, const struct answer *a)
{
	q->chased += a->chased;
	if (a->ttl_ms < q->ttl_ms)
		q->ttl_ms = a->ttl_ms;
	q->security = resolve_weaker(q->security, a->security);
	if (a->status != ANSWER_ALIAS || q->chased > ANSWER_CHASE_MAX)
		return false;
	assert(strlen(a->alias) < sizeof q->asking);
	strcpy(q->asking, a->alias);
	return true;
}

/* The answer to q->asking: ask on, or settle. */
static void on_answer(struct question *q, struct answer *a)
{
	assert(a->refs == 1); /* it is changed */
	if (ask_on(q, a)) {
		answer_unref(a);
		ask_again(q);
		return;
	}
	if (q->chased > ANSWER_CHASE_MAX) {
		answer_unref(a);
		a = answer_failed("a CNAME loop, or a chain too long");
	}
	if (q->chased > 0 && !a->canonical)
		a->canonical = mem_strdup(q->asking);
	a->ttl_ms = q->ttl_ms;
	a->security = q->security;
	settle_question(q, a);
}

static void validate_question(struct question *q)
{
	begin_way(q);
	assert(list_empty(&q->validating));
	list_append(&q->all->validating, &q->validating);
	q->all->nvalidating++;
	dnssec_ask(q->all->dnssec, q->asking, q->type, &q->validation);
}

static void on_bytes(struct question *q, const void *bytes, size_t len)
{
	struct answer *a = answer_parse(bytes, len, q->asking, q->type);
	if (a->choked && q->edns != QUERY_PLAIN) {
		answer_unref(a);
		send_packet(q, QUERY_PLAIN);
		return;
	}
	a->security = dnssec_security(q->all->dnssec, a->authentic);
	on_answer(q, a);
}

static void on_replied(struct channel_query *query, enum channel_event event, const void *bytes,
		       size_t len)
{
	struct question *q = (struct question *)query;
	end_way(q);
	if (q->all->ending)
		return;
	if (q->edns == QUERY_EDNS_CD && (event == CHANNEL_REPLY || event == CHANNEL_FAILED)) {
		validate_question(q);
		return;
	}
	switch (event) {
	case CHANNEL_REPLY:
		if (dnssec_believes(q->all->dnssec))
			on_bytes(q, bytes, len);
		else
			ask_again(q);
		return;
	case CHANNEL_TIMEOUT:
		settle_question(q, answer_failed("timed out"));
		return;
	case CHANNEL_CLOSED:
		ask_again(q);
		return;
	case CHANNEL_FAILED:
		break;
	}
	/* c-ares keeps SERVFAIL, NOTIMP and REFUSED to itself; servers that know no EDNS say any of
	 * them. */
	if (q->edns == QUERY_PLAIN)
		settle_question(q, answer_failed("no name server gave an answer"));
	else
		send_packet(q, QUERY_PLAIN);
}

static struct answer *make_bogus(const char *why)
{
	char text[WHY_MAX];
	snprintf(text, sizeof text, "bogus, says DNSSEC: %s", why ? why : "a validation failure");
	for (char *c = text; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
	struct answer *a = answer_failed(text);
	a->security = RESOLVE_BOGUS;
	return a;
}

static void on_validated(struct validation *validation, const struct validator_reply *r)
{
	struct question *q = list_entry(validation, struct question, validation);
	end_way(q);
	assert(q->all->nvalidating > 0);
	list_remove(&q->validating);
	q->all->nvalidating--;
	if (q->all->ending)
		return;
	if (r->event == CHANNEL_CLOSED) {
		ask_again(q);
	} else if (r->event == CHANNEL_TIMEOUT) {
		settle_question(q, answer_failed("timed out"));
	} else if (r->event == CHANNEL_FAILED) {
		settle_question(
			q, answer_failed("no name server gave an answer that could be validated"));
	} else if (r->security == RESOLVE_BOGUS) {
		settle_question(q, make_bogus(r->why));
	} else {
		struct answer *a = answer_parse(r->bytes, r->len, q->asking, q->type);
		a->security = r->security;
		on_answer(q, a);
	}
}

/* Until q has been under way for a second. */
static int64_t brisk_for_ms(const struct question *q)
{
	int64_t left_ms = q->asked_ms + QUESTION_BRISK_MS - q->all->loop->now_ms;
	return left_ms > 0 ? left_ms : 0;
}

/* Until the first that validators have is slow. */
static int64_t validators_brisk_for_ms(const struct questions *all)
{
	const struct list *link = list_first(&all->validating);
	return link ? brisk_for_ms(list_entry(link, struct question, validating))
		    : QUESTION_BRISK_MS;
}

static bool validators_are_held(const struct questions *all)
{
	return all->nvalidating >= QUESTION_UNSEEN_MAX && validators_brisk_for_ms(all) == 0;
}

/* Whoever asks them takes its turn in less than a second: by then one is answered, or they are held. */
static bool validators_are_busy(const struct questions *all)
{
	return all->nvalidating >= QUESTION_VALIDATING_MAX && validators_brisk_for_ms(all) > 0;
}

static void begin_question(struct question *q, enum dnssec_way way)
{
	if (way == DNSSEC_CHANNEL)
		send_packet(q, dnssec_edns(q->all->dnssec));
	else if (validators_are_held(q->all))
		send_packet(q, QUERY_EDNS_CD);
	else
		validate_question(q);
}

static struct question *question_new(struct questions *all, const char *name, enum answer_type type)
{
	assert(strlen(name) < DNSNAME_SIZE);
	struct question *q = mem_zalloc(sizeof *q);
	q->query.replied = on_replied;
	q->all = all;
	q->type = type;
	q->validation.validated = on_validated;
	q->security = RESOLVE_SECURE;
	q->ttl_ms = INT64_MAX;
	list_init(&q->link);
	list_init(&q->validating);
	list_init(&q->askers);
	strcpy(q->asking, name);
	q->key[0] = (char)((unsigned)type >> 8);
	q->key[1] = (char)type;
	strcpy(q->key + 2, name);
	q->keylen = 2 + strlen(name);
	return q;
}

/* When the first of those that were asked is to lag; -1: none may. */
static int64_t lags_in_ms(const struct questions *all)
{
	const struct list *link = list_first(&all->asked);
	if (!link || all->nlagging >= QUESTION_LAGGING_MAX)
		return -1;
	return brisk_for_ms(list_entry(link, struct question, link));
}

static bool find_place(struct questions *all)
{
	while (all->nasked >= QUESTION_UNDER_WAY_MAX && lags_in_ms(all) == 0)
		let_lag(list_entry(list_first(&all->asked), struct question, link));
	return all->nasked < QUESTION_UNDER_WAY_MAX;
}

/* The first of the line whose turn it is; NULL: none waits. */
static struct question *next_waiting(const struct questions *all)
{
	for (unsigned i = 0; i < QUESTION_LINES; i++) {
		struct list *first = list_first(&all->waiting[(all->turn + i) % QUESTION_LINES]);
		if (first)
			return list_entry(first, struct question, link);
	}
	return NULL;
}

/* Nothing else need happen before others may be asked. */
static void keep_ticking(struct questions *all)
{
	int64_t in_ms = validators_are_busy(all) ? validators_brisk_for_ms(all) : lags_in_ms(all);
	if (in_ms >= 0 && next_waiting(all) && !timer_active(&all->tick))
		loop_timer_in(all->loop, &all->tick, in_ms > 0 ? in_ms : QUESTION_BRISK_MS);
}

/* Whoever is to be asked is known, and can take one more. */
static bool may_begin(const struct questions *all, enum dnssec_way way)
{
	return way == DNSSEC_CHANNEL || (way == DNSSEC_VALIDATOR && !validators_are_busy(all));
}

/* Who has waited for too long. */
static void end_waiting(struct questions *all, struct list *line)
{
	struct list *link;
	while ((link = list_first(line))) {
		struct question *q = list_entry(link, struct question, link);
		if (q->patience_ms > all->loop->now_ms)
			return;
		settle_question(q, answer_failed("timed out waiting behind other questions"));
	}
}

/* One more, when there is a place for it. */
static void send_waiting(struct questions *all)
{
	struct question *q;
	enum dnssec_way way;
	while ((q = next_waiting(all)) && find_place(all) &&
	       may_begin(all, way = dnssec_way(all->dnssec))) {
		all->turn = (q->line + 1) % QUESTION_LINES;
		begin_question(q, way);
	}
	keep_ticking(all);
	for (int i = 0; i < QUESTION_LINES; i++)
		end_waiting(all, &all->waiting[i]);
}

void question_ask(struct questions *all, const char *name, enum answer_type type,
		  struct asker *asker)
{
	struct question *q = question_new(all, name, type), *equal;
	assert(loop_is_ours(all->loop) && asker->answered);
	HASH_FIND(hh, all->table, q->key, q->keylen, equal);
	if (equal) {
		free(q);
		list_append(&equal->askers, &asker->link);
		return;
	}
	list_append(&q->askers, &asker->link);
	struct answer *known = cache_get(all->cache, name, type, all->loop->now_ms);
	if (known) {
		metrics_add(METRIC_dns_cache_hits, 1);
		q->known = true;
		settle_question(q, known);
		return;
	}
	HASH_ADD_KEYPTR(hh, all->table, q->key, q->keylen, q);
	q->patience_ms = all->loop->now_ms + all->patience_ms;
	q->line = asker->line % QUESTION_LINES;
	list_move(&all->waiting[q->line], &q->link);
}

struct answer *questions_known(struct questions *all, const char *name, enum answer_type type)
{
	assert(loop_is_ours(all->loop));
	return cache_get(all->cache, name, type, all->loop->now_ms);
}

void questions_keep_failure(struct questions *all, const char *name, enum answer_type type,
			    struct answer *answer)
{
	struct answer *known = cache_get(all->cache, name, type, all->loop->now_ms);
	bool better = known && known->status != ANSWER_FAILED;
	if (!better && answer->status == ANSWER_FAILED && answer->late)
		cache_put_failure(all->cache, name, type, answer, all->loop->now_ms);
	answer_unref(known);
}

void question_withdraw(struct asker *asker)
{
	list_remove(&asker->link);
}

static void question_free(struct question *q)
{
	if (!q->known)
		HASH_DEL(q->all->table, q);
	list_remove(&q->link);
	while (!list_empty(&q->askers))
		list_remove(list_first(&q->askers));
	answer_unref(q->answer);
	assert(list_empty(&q->askers) && list_empty(&q->link) && list_empty(&q->validating));
	free(q);
}

static void count_security(const struct answer *a)
{
	static const enum metric of[] = {
		[RESOLVE_INDETERMINATE] = METRIC_dnssec_indeterminate,
		[RESOLVE_INSECURE] = METRIC_dnssec_insecure,
		[RESOLVE_SECURE] = METRIC_dnssec_secure,
		[RESOLVE_BOGUS] = METRIC_dnssec_bogus,
	};
	if (a->status != ANSWER_FAILED || a->security == RESOLVE_BOGUS)
		metrics_add(of[a->security], 1);
}

/* Whoever asks the same from now on finds the cache, or asks anew. */
static void tell_askers(struct questions *all, struct question *q)
{
	struct answer *answer = q->answer;
	struct list askers, *link;
	assert(answer && answer->refs > 0);
	list_init(&askers);
	while ((link = list_first(&q->askers)))
		list_move(&askers, link);
	bool known = q->known;
	if (!known)
		count_security(answer);
	if (!known)
		cache_put(all->cache, q->key + 2, q->type, answer, all->loop->now_ms);
	q->answer = NULL;
	question_free(q);
	while ((link = list_first(&askers))) {
		struct asker *asker = list_entry(link, struct asker, link);
		list_remove(link);
		asker->known = known;
		asker->answered(asker, answer);
	}
	answer_unref(answer);
}

void questions_work(struct questions *all)
{
	struct list *link;
	assert(loop_is_ours(all->loop));
	do {
		while ((link = list_first(&all->answered)))
			tell_askers(all, list_entry(link, struct question, link));
		send_waiting(all);
	} while (!list_empty(&all->answered));
}

void questions_reload(struct questions *all, struct conf *conf)
{
	struct channel *old = all->channel;
	assert(loop_is_ours(all->loop) && !all->ending);
	dnssec_free(&all->dnssec);
	apply_conf(all, conf, old);
	channel_free(&old); /* on_replied() puts all questions back */
	assert(all->nasked == 0 && all->nlagging == 0 && all->nvalidating == 0);
	cache_clear(all->cache);
	questions_work(all);
}

static void free_list(struct list *list)
{
	struct list *link;
	while ((link = list_first(list)))
		question_free(list_entry(link, struct question, link));
}

void questions_free(struct questions **ap)
{
	struct questions *all = *ap;
	if (!all)
		return;
	all->ending = true;
	dnssec_free(&all->dnssec);
	channel_free(&all->channel);
	for (int i = 0; i < QUESTION_LINES; i++)
		free_list(&all->waiting[i]);
	free_list(&all->asked);
	free_list(&all->lagging);
	free_list(&all->answered);
	cache_free(&all->cache);
	timer_stop(&all->loop->timers, &all->tick);
	assert(!all->table && all->nasked == 0 && all->nlagging == 0 && all->nvalidating == 0);
	free(all);
	*ap = NULL;
}
