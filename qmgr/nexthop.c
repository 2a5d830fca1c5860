/* SPDX-License-Identifier: ISC */
#include "qmgr/nexthop.h"

#include "base/address.h"
#include "base/buf.h"
#include "base/mailaddr.h"
#include "base/mem.h"
#include "qmgr/outcome.h"
#include "qmgr/route/nexthop_name.h"
#include "qmgr/router.h"
#include "qmgr/sched/job.h"
#include "qmgr/sched/pool.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Hosts once found serve this long without another question: dns has the time to live, but every
 * question costs two hops between threads. */
enum { FRESH_MS = 5000 };

/* Those of one group share a preference; where there are weights they are shares of connections. */
static struct nexthop_answer *add_question(struct nexthop *n, enum resolve_kind kind,
					   const char *name, int port, bool trusted)
{
	int i = n->nanswer++;
	n->answers = mem_realloc(n->answers, (size_t)n->nanswer * sizeof *n->answers);
	struct nexthop_answer *a = &n->answers[i];
	struct resolve *ask = resolve_new(kind, name, n->qmgr->sched.loop, n);
	ask->order = i;
	ask->trusted = trusted;
	*a = (struct nexthop_answer){.resolve = ask, .port = port};
	a->group = i > 0 ? n->answers[i - 1].group + 1 : 0;
	return a;
}

static void add_relays(struct nexthop *n, const struct conf_list *relays, int default_port)
{
	int weight_before = 0;
	for (int i = 0; i < relays->n; i++) {
		struct conf_relay r;
		if (!conf_relay_read(relays->item[i], &r))
			continue; /* the configuration was checked when it was read */
		struct nexthop_answer *a =
			add_question(n, r.bracketed ? RESOLVE_HOST : RESOLVE_MX, r.host,
				     r.port > 0 ? r.port : default_port, true);
		a->weight = r.weight;
		if (r.weight > 0 && weight_before > 0)
			a->group--;
		weight_before = r.weight;
		free(r.host);
	}
}

static void add_domain(struct nexthop *n, const char *domain, int port)
{
	if (domain[0] == '[') {
		char *literal = mem_strndup(domain + 1, strlen(domain) - 2);
		add_question(n, RESOLVE_HOST, literal, port, false);
		free(literal);
	} else {
		add_question(n, RESOLVE_MX, domain, port, false);
	}
}

static void add_questions(struct nexthop *n, const struct route *route, const char *address)
{
	int port = (int)route->by->port;
	if (route->relay->n > 0)
		add_relays(n, route->relay, port);
	else
		add_domain(n, mailaddr_domain(address), port);
	n->nown = n->nanswer;
	add_relays(n, &route->by->fallback_relay, port);
}

static void ask(struct nexthop *n)
{
	struct qmgr *q = n->qmgr;
	n->asking = n->nanswer;
	for (int i = 0; i < n->nanswer; i++) {
		struct note *note = &n->answers[i].resolve->note;
		n->answers[i].resolve = NULL;
		q->db.edges.to_dns(q->db.edges.context, note);
	}
}

struct nexthop *nexthop_of(struct job *job, uint32_t recipient)
{
	struct message *m = message_of_work(job->work);
	struct qmgr *q = m->qmgr;
	const char *address = job->work->envelope->rcpt[recipient].address;
	const struct route *route = router_route(m, recipient);
	struct buf key;
	buf_init(&key);
	nexthop_write_key(&key, route, address);
	struct nexthop *n;
	HASH_FIND(hh, q->nexthops, buf_cstr(&key), buf_len(&key), n);
	if (n) {
		buf_fini(&key);
		return n;
	}
	n = mem_zalloc(sizeof *n);
	n->key = buf_steal(&key, NULL);
	n->qmgr = q;
	n->site_name = nexthop_site_name(route, address);
	n->transport = job->transport;
	HASH_ADD_KEYPTR(hh, q->nexthops, n->key, strlen(n->key), n);
	return n;
}

bool nexthop_known(const struct nexthop *n)
{
	return n->way.queue && n->asking == 0 &&
	       scheduler_now_ms(&n->qmgr->sched) < n->fresh_until_ms;
}

void nexthop_ask(struct nexthop *n, struct message *m, uint32_t recipient)
{
	const char *address = m->work.envelope->rcpt[recipient].address;
	n->asked_by = m;
	add_questions(n, router_route(m, recipient), address);
	ask(n);
}

void nexthop_wait(struct nexthop *n, struct job *job, uint32_t recipient)
{
	if (n->nwaiting == n->waiting_cap) {
		n->waiting_cap = n->waiting_cap ? n->waiting_cap * 2 : 4;
		n->waiting = mem_realloc(n->waiting, n->waiting_cap * sizeof *n->waiting);
	}
	n->waiting[n->nwaiting++] = (struct waiting_recipient){job, recipient};
}

static char *peer_name(const char *name, const union address *address)
{
	char text[ADDRESS_PEER_MAX];
	return mem_strdup(address_peer(address, name, text));
}

static int count_addresses(const struct resolve *r)
{
	int n = 0;
	for (int h = 0; h < r->nhost; h++)
		n += r->host[h].naddress;
	return n;
}

/* All addresses of all answers, groups in order: the order of the relays, then the preference; behind
 * them those of fallback_relay. */
static struct site_host *gather_hosts(struct nexthop *n, int *count)
{
	struct site_host *hosts = NULL;
	*count = 0;
	for (int i = 0; i < n->nanswer; i++) {
		const struct nexthop_answer *from = &n->answers[i];
		const struct resolve *r = from->resolve;
		int addresses = count_addresses(r);
		hosts = mem_realloc(hosts, (size_t)(*count + addresses + 1) * sizeof *hosts);
		for (int h = 0; h < r->nhost; h++)
			for (int a = 0; a < r->host[h].naddress; a++) {
				union address address = r->host[h].address[a];
				address_set_port(&address, from->port);
				hosts[(*count)++] = (struct site_host){
					.host = destdb_get(&n->qmgr->db, n->transport, &address),
					.name = mem_strdup(r->host[h].name),
					.peer = peer_name(r->host[h].name, &address),
					.preference = from->group << 16 | r->host[h].preference,
					.weight = (double)from->weight / addresses};
			}
	}
	return hosts;
}

static bool found(const struct nexthop *n, int from, int to)
{
	while (from < to && n->answers[from].resolve->nhost == 0)
		from++;
	return from < to;
}

/* Why there is no host. A relay that the operator named and that can't be found is not the sender's
 * fault: such mail waits. */
static struct verdict *failure_of(const struct nexthop *n)
{
	struct verdict *v = n->answers[0].resolve->failure;
	for (int i = 1; i < n->nown && v->class == VERDICT_FAILED; i++)
		v = n->answers[i].resolve->failure;
	if (n->answers[0].resolve->trusted && v->class == VERDICT_FAILED)
		return verdict_printf(VERDICT_DEFERRED, 0, "4.4.4", NULL, "next hop unusable: %s",
				      v->text);
	return verdict_ref(v);
}

/* NULL: there are hosts. fallback_relay helps where the destination can't be found for now, not where
 * there is none. */
static struct verdict *judge(const struct nexthop *n)
{
	if (found(n, 0, n->nown))
		return NULL;
	struct verdict *failure = failure_of(n);
	if (failure->class == VERDICT_DEFERRED && found(n, n->nown, n->nanswer)) {
		verdict_unref(failure);
		return NULL;
	}
	return failure;
}

static void enter_site(struct nexthop *n)
{
	int first = 0, count;
	while (n->answers[first].resolve->nhost == 0)
		first++;
	char *name = n->site_name ? mem_strdup(n->site_name)
				  : nexthop_name_of_hosts(n->answers[first].resolve);
	struct site *site = site_get(&n->qmgr->db, n->transport, name);
	free(name);
	struct site_host *hosts = gather_hosts(n, &count);
	site_set_hosts(site, hosts, count);
	site->refs++;
	if (n->way.queue)
		nexthop_site(n)->refs--;
	n->way.queue = &site->queue;
	n->fresh_until_ms = scheduler_now_ms(&n->qmgr->sched) + FRESH_MS;
}

void nexthop_enter(struct nexthop *n, struct job *job, uint32_t recipient)
{
	job_add_recipient(job, &n->way, recipient);
	if (message_of_work(job->work)->urgent)
		site_try_now(nexthop_site(n));
}

static void let_go(struct nexthop *n, struct verdict *failure)
{
	struct waiting_recipient *waiting = n->waiting;
	size_t nwaiting = n->nwaiting;
	struct outcome_context context = {.transport = n->transport};
	n->waiting = NULL;
	n->nwaiting = n->waiting_cap = 0;
	for (size_t i = 0; i < nwaiting; i++) {
		struct job *job = waiting[i].job;
		struct message *m = message_of_work(job->work);
		if (!failure && !m->work.cancelled) {
			nexthop_enter(n, job, waiting[i].recipient);
			continue;
		}
		if (failure && !m->work.cancelled)
			outcome_apply(m, waiting[i].recipient, failure, &context);
		job->routing--;
		pool_free(job, 1);
		message_check(n->qmgr, m);
	}
	free(waiting);
}

static void forget_answers(struct nexthop *n)
{
	for (int i = 0; i < n->nanswer; i++)
		resolve_free(&n->answers[i].resolve);
	free(n->answers);
	n->answers = NULL;
	n->nanswer = 0;
}

void nexthop_answered(struct resolve *r)
{
	struct nexthop *n = r->owner;
	n->answers[r->order].resolve = r;
	if (--n->asking > 0)
		return;
	struct verdict *failure = judge(n);
	if (!failure)
		enter_site(n);
	forget_answers(n);
	router_ended(n->asked_by);
	let_go(n, failure);
	verdict_unref(failure);
}

void nexthop_drop(struct nexthop *n)
{
	for (size_t i = 0; i < n->nwaiting; i++) {
		struct job *job = n->waiting[i].job;
		job->routing--;
		pool_free(job, 1);
	}
	n->nwaiting = 0;
	if (n->asking > 0)
		router_ended(n->asked_by);
}

void nexthop_free(struct nexthop *n)
{
	assert(n->way.peers == 0);
	if (n->way.queue)
		nexthop_site(n)->refs--;
	HASH_DEL(n->qmgr->nexthops, n);
	forget_answers(n);
	free(n->waiting);
	free(n->site_name);
	free(n->key);
	free(n);
}
