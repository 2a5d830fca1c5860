/* SPDX-License-Identifier: ISC */
#include "qmgr/door.h"

#include "base/clock.h"
#include "base/date.h"
#include "base/hint.h"
#include "base/magic.h"
#include "base/mailaddr.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/name_key.h"
#include "base/tables.h"
#include "qmgr/qmgr_thread.h"
#include "qmgr/route/nexthop_lookup.h"

#include <assert.h>
#include <stdlib.h>
#include <time.h>

enum { DOOR_MAGIC = 0xd0012345, DAY_TEXT = 32 };

struct door_question {
	unsigned magic;
	struct list link;
	struct verify *ask;
};

void door_init(struct door *d)
{
	*d = (struct door){0};
	list_init(&d->asking);
}

void door_close(struct door *d)
{
	d->closed = true;
}

static void question_free(struct door_question *question)
{
	magic_clear(question);
	list_remove(&question->link);
	if (question->ask)
		verify_free(&question->ask);
	free(question);
}

void door_fini(struct door *d)
{
	list_each (link, tmp, &d->asking)
		question_free(list_entry(link, struct door_question, link));
	assert(list_empty(&d->asking));
}

/* --- answers */

static void post_answer(struct verify *ask, enum verify_result result)
{
	ask->note.type = VERIFY_ANSWER;
	ask->result = result;
	loop_post(ask->reply_to, &ask->note);
}

/* Takes the verdict. */
static void refuse_with(struct verify *ask, struct verdict *v, const char *reason)
{
	assert(v->class != VERDICT_SENT && !ask->verdict);
	metric_cell_add(metric_cell(FAMILY_known_refusals, reason, NULL), 1);
	ask->ours = true;
	ask->verdict = v;
	post_answer(ask, v->class == VERDICT_FAILED ? VERIFY_REFUSES : VERIFY_UNKNOWN);
}

/* --- what is known */

static const char *sender_of(const struct qmgr *q, const struct verify *ask)
{
	return ask->sender ? ask->sender : q->sched.conf->verify.sender;
}

static const struct route *route_of_mail(const struct qmgr *q, const struct verify *ask)
{
	return route_find(q->routes, ask->from ? ask->from : sender_of(q, ask), ask->address);
}

/* No file of the route has it. True: that, or who else is to be asked, is the answer. */
static bool refuse_unlisted(const struct qmgr *q, struct verify *ask, const struct route *r)
{
	tables_servers(q->sched.conf->tables, TABLE_RECIPIENTS, r->recipients, &ask->servers);
	if (ask->servers.n > 0 && ask->listed)
		return false;
	if (ask->servers.n > 0)
		post_answer(ask, VERIFY_UNLISTED);
	else
		refuse_with(ask, verdict_new(VERDICT_FAILED, 550, "5.1.1", NULL, "User unknown"),
			    "recipients");
	return true;
}

/* True: the route is the answer. */
static bool refuse_by_route(const struct qmgr *q, struct verify *ask, const struct route *r)
{
	if (r->action == ROUTE_ERROR) {
		enum verdict_class class = r->dsn[0] == '4' ? VERDICT_DEFERRED : VERDICT_FAILED;
		refuse_with(ask, verdict_new(class, 0, r->dsn, NULL, r->text), "route");
	} else if (r->recipients && !tables_list(q->sched.conf->tables, TABLE_RECIPIENTS,
						 r->recipients, ask->address)) {
		return refuse_unlisted(q, ask, r);
	} else {
		return false;
	}
	return true;
}

static const char *day_text(int64_t wall_ms, char text[DAY_TEXT])
{
	time_t at = (time_t)((wall_ms + date_ahead_ms()) / 1000);
	struct tm tm;
	strftime(text, DAY_TEXT, "%Y-%m-%d", localtime_r(&at, &tm));
	return text;
}

static bool refuse_suppressed(struct qmgr *q, struct verify *ask)
{
	char text[DAY_TEXT];
	int64_t now_ms = clock_wall_ms();
	suppressed_age(&q->suppressed, now_ms, q->sched.conf->suppress_most);
	const struct suppressed_one *one =
		suppressed_find(&q->suppressed, ask->address, now_ms, ask->suppress_ms);
	if (!one)
		return false;
	ask->learnt = true;
	refuse_with(ask,
		    verdict_printf(VERDICT_FAILED, 550, "5.1.1", NULL,
				   "User unknown there since %s", day_text(one->since_ms, text)),
		    "suppressed");
	return true;
}

static bool may_be_dead(const char *address)
{
	char *key = name_key(address);
	bool maybe = hint_maybe(HINT_DEAD_DOMAIN, mailaddr_domain(key));
	free(key);
	return maybe;
}

/* True: dns is asked. */
static bool ask_dns(struct qmgr *q, struct verify *ask, bool by_mx)
{
	if (q->door.closed || !by_mx || !may_be_dead(ask->address))
		return false;
	struct door_question *question = mem_zalloc(sizeof *question);
	question->magic = DOOR_MAGIC;
	question->ask = ask;
	list_init(&question->link);
	list_append(&q->door.asking, &question->link);
	struct resolve *r =
		resolve_new(RESOLVE_MX, mailaddr_domain(ask->address), q->sched.loop, question);
	r->known = true;
	q->db.edges.to_dns(q->db.edges.context, &r->note);
	return true;
}

/* --- and who has to be asked */

static void pass_question(struct qmgr *q, struct verify *ask)
{
	const struct route *r = route_find(q->routes, sender_of(q, ask), ask->address);
	if (ask->only_routed && !r->verify)
		post_answer(ask, VERIFY_UNWANTED);
	else if (r->action == ROUTE_DISCARD)
		post_answer(ask, VERIFY_TAKES);
	else
		verifier_ask(q, ask);
}

void door_ask(struct qmgr *q, struct verify *ask)
{
	const struct route *r = route_of_mail(q, ask);
	bool by_mx = r->action == ROUTE_DELIVER && nexthop_lookup_by_mx(r, ask->address);
	assert(!ask->verdict);
	if (refuse_by_route(q, ask, r))
		return;
	if (!ask->fresh && (refuse_suppressed(q, ask) || ask_dns(q, ask, by_mx)))
		return;
	pass_question(q, ask);
}

void door_answered(struct qmgr *q, struct resolve *r)
{
	struct door_question *question = r->owner;
	magic_check(question, DOOR_MAGIC);
	struct verify *ask = question->ask;
	assert(r->known && loop_is_ours(q->sched.loop));
	assert(ask);
	if (!q->door.closed) {
		question->ask = NULL;
		ask->learnt = r->failure;
		if (r->failure)
			refuse_with(ask, verdict_ref(r->failure), "domain");
		else
			pass_question(q, ask);
	}
	question_free(question);
	resolve_free(&r);
}
