/* SPDX-License-Identifier: ISC */
#include "dns/probe.h"

#include "base/address.h"
#include "base/log.h"
#include "base/mem.h"
#include "dns/channel.h"

#include <assert.h>
#include <ldns/ldns.h>
#include <stdlib.h>
#include <sys/random.h>

enum {
	AGAIN_UNSURE_MS = 30 * 1000,
	AGAIN_NONE_MS = 10 * 60 * 1000,
	TRIES = 2,
	TRIES_SHARE = 3, /* of the time for one answer: the second try takes twice as long */
	TIMEOUT_MS_MIN = 10,
};

/* The questions to each server. */
enum asked { ASKED_KEYS, ASKED_DENIAL, ASKED_PLAIN, ASKED_COUNT };

enum finding { FINDING_OPEN, FINDING_SILENT, FINDING_NONE, FINDING_DNSSEC };

static const struct {
	ldns_rr_type type;
	enum query_edns edns;
} questions[ASKED_COUNT] = {
	[ASKED_KEYS] = {LDNS_RR_TYPE_DNSKEY, QUERY_EDNS_DO},
	[ASKED_DENIAL] = {LDNS_RR_TYPE_TXT, QUERY_EDNS_DO},
	[ASKED_PLAIN] = {LDNS_RR_TYPE_NS, QUERY_PLAIN},
};

struct probed_question {
	struct channel_query query;
	struct probed *server;
	enum asked asked;
};

struct probed {
	struct probe *probe;
	union address address;
	struct channel *channel; /* in a round */
	enum finding finding, said;
	bool alive;		      /* it says anything but SERVFAIL, which may pass */
	bool replied[ASKED_COUNT];    /* at all */
	bool understood[ASKED_COUNT]; /* what it was asked */
	bool signed_for[ASKED_COUNT]; /* it replied with signatures */
	struct probed_question question[ASKED_COUNT];
};

struct probe {
	struct loop *loop;
	struct conf_dns conf; /* its texts are not used */
	void (*changed)(void *owner);
	void *owner;
	enum probe_state state;
	bool alive; /* something answers */
	int open;   /* questions of this round without an answer */
	struct timer done;
	int64_t again_ms;
	int nserver;
	struct probed server[PROBE_SERVERS_MAX];
};

static bool has_type(const ldns_rr_list *list, ldns_rr_type type)
{
	for (size_t i = 0; i < ldns_rr_list_rr_count(list); i++)
		if (ldns_rr_get_type(ldns_rr_list_rr(list, i)) == type)
			return true;
	return false;
}

static bool has_signed(const ldns_rr_list *list, ldns_rr_type type)
{
	return has_type(list, type) && has_type(list, LDNS_RR_TYPE_RRSIG);
}

static bool is_signed(const ldns_pkt *pkt, enum asked asked)
{
	const ldns_rr_list *answer = ldns_pkt_answer(pkt), *authority = ldns_pkt_authority(pkt);
	if (ldns_pkt_get_rcode(pkt) != LDNS_RCODE_NOERROR)
		return false;
	return has_signed(answer, questions[asked].type) ||
	       (asked == ASKED_DENIAL && (has_signed(authority, LDNS_RR_TYPE_NSEC) ||
					  has_signed(authority, LDNS_RR_TYPE_NSEC3)));
}

static void read_reply(struct probed_question *q, const void *bytes, size_t len)
{
	ldns_pkt *pkt = NULL;
	struct probed *s = q->server;
	s->replied[q->asked] = true;
	if (ldns_wire2pkt(&pkt, bytes, len) != LDNS_STATUS_OK) {
		s->alive = true;
		return;
	}
	ldns_pkt_rcode rcode = ldns_pkt_get_rcode(pkt);
	s->alive = s->alive || rcode != LDNS_RCODE_SERVFAIL;
	s->understood[q->asked] = rcode != LDNS_RCODE_FORMERR && rcode != LDNS_RCODE_NOTIMPL &&
				  rcode != LDNS_RCODE_SERVFAIL &&
				  ldns_pkt_edns_extended_rcode(pkt) == 0;
	s->signed_for[q->asked] = is_signed(pkt, q->asked);
	ldns_pkt_free(pkt);
}

static bool takes_edns(const struct probed *s)
{
	return s->understood[ASKED_KEYS] || s->understood[ASKED_DENIAL] ||
	       !s->understood[ASKED_PLAIN];
}

/* Packets may have been lost, or the server is about to start. */
static bool is_unsure(const struct probed *s)
{
	if (s->finding == FINDING_DNSSEC)
		return false;
	return !s->alive || !s->replied[ASKED_KEYS] || !s->replied[ASKED_DENIAL];
}

static void on_replied(struct channel_query *query, enum channel_event event, const void *bytes,
		       size_t len)
{
	struct probed_question *q = (struct probed_question *)query;
	struct probe *p = q->server->probe;
	if (event == CHANNEL_CLOSED)
		return;
	assert(!q->server->replied[q->asked]);
	if (event == CHANNEL_REPLY)
		read_reply(q, bytes, len);
	assert(p->open > 0);
	if (--p->open == 0)
		loop_timer_in(p->loop, &p->done, 0);
}

/* on_done() does all that there is to do. */
static void on_worked(void *owner)
{
	(void)owner;
}

static void ask_question(struct probed *s, enum asked asked)
{
	struct probed_question *q = &s->question[asked];
	uint16_t id = 0;
	size_t size;
	if (getrandom(&id, sizeof id, 0) != (ssize_t)sizeof id)
		abort(); /* Ids that can be guessed would let anybody answer. */
	uint8_t *bytes = query_build("", questions[asked].type, questions[asked].edns, id, &size);
	*q = (struct probed_question){{on_replied}, s, asked};
	channel_send(s->channel, bytes, size, &q->query);
	free(bytes);
}

static void ask_server(struct probe *p, struct probed *s)
{
	assert(!s->channel);
	s->channel = channel_new_single(p->loop, &p->conf, &s->address, on_worked, p);
	s->alive = false;
	for (int i = 0; i < ASKED_COUNT; i++)
		s->replied[i] = s->understood[i] = s->signed_for[i] = false;
	for (int i = 0; i < ASKED_COUNT; i++)
		ask_question(s, (enum asked)i);
}

static void begin_round(struct probe *p)
{
	assert(p->open == 0 && !timer_active(&p->done));
	for (int i = 0; i < p->nserver; i++)
		if (p->server[i].finding != FINDING_DNSSEC)
			p->open += ASKED_COUNT;
	for (int i = 0; i < p->nserver; i++)
		if (p->server[i].finding != FINDING_DNSSEC)
			ask_server(p, &p->server[i]);
	if (p->nserver == 0)
		loop_timer_in(p->loop, &p->done, 0);
}

static void say_finding(struct probed *s)
{
	char where[ADDRESS_WHERE_MAX];
	const char *server = address_where(&s->address, where);
	if (s->said == s->finding || s->finding == FINDING_SILENT)
		return;
	s->said = s->finding;
	if (s->finding == FINDING_DNSSEC)
		log_event(LOG_LEVEL_INFO, "dnssec", "server", server, "validated", "yes", NULL);
	else
		log_event(LOG_LEVEL_WARNING, "dnssec", "server", server, "validated", "no",
			  "reason",
			  takes_edns(s) ? "it hands on no signatures: its answers are not "
					  "validated"
					: "it answers no questions with EDNS: it is asked without, "
					  "and its answers are not validated",
			  NULL);
}

static void judge_server(struct probed *s)
{
	if (s->finding == FINDING_DNSSEC)
		return;
	if (s->signed_for[ASKED_KEYS] && s->signed_for[ASKED_DENIAL])
		s->finding = FINDING_DNSSEC;
	else
		s->finding = s->alive || s->finding == FINDING_NONE ? FINDING_NONE : FINDING_SILENT;
	say_finding(s);
}

static int count_servers(const struct probe *p, enum finding finding)
{
	int n = 0;
	for (int i = 0; i < p->nserver; i++)
		n += p->server[i].finding == finding;
	return n;
}

static void on_done(void *owner)
{
	struct probe *p = owner;
	enum probe_state before = p->state;
	assert(p->open == 0);
	int passed = count_servers(p, FINDING_DNSSEC);
	for (int i = 0; i < p->nserver; i++) {
		channel_free(&p->server[i].channel);
		judge_server(&p->server[i]);
	}
	assert(count_servers(p, FINDING_DNSSEC) >= passed); /* who has passed is not judged again */
	if (count_servers(p, FINDING_DNSSEC) > 0)
		p->state = PROBE_DNSSEC;
	else if (count_servers(p, FINDING_NONE) > 0 || p->alive)
		p->state = PROBE_NONE;
	else
		p->state = PROBE_SILENT;
	bool unsure = false;
	for (int i = 0; i < p->nserver; i++)
		unsure = unsure || is_unsure(&p->server[i]);
	p->again_ms = p->loop->now_ms + (unsure ? AGAIN_UNSURE_MS : AGAIN_NONE_MS);
	if (p->state != before || count_servers(p, FINDING_DNSSEC) != passed)
		p->changed(p->owner);
}

struct probe *probe_new(struct loop *loop, const struct conf_dns *conf, const union address *server,
			int nserver, void (*changed)(void *owner), void *owner)
{
	assert(nserver >= 0 && nserver <= PROBE_SERVERS_MAX && changed);
	struct probe *p = mem_zalloc(sizeof *p);
	p->loop = loop;
	p->conf = *conf;
	p->conf.tries = TRIES;
	p->conf.timeout = conf->timeout / TRIES_SHARE;
	if (p->conf.timeout < TIMEOUT_MS_MIN)
		p->conf.timeout = TIMEOUT_MS_MIN;
	p->changed = changed;
	p->owner = owner;
	timer_init(&p->done, on_done, p);
	for (int i = 0; i < nserver && i < PROBE_SERVERS_MAX; i++)
		p->server[p->nserver++] = (struct probed){.probe = p, .address = server[i]};
	begin_round(p);
	return p;
}

void probe_free(struct probe **pp)
{
	struct probe *p = *pp;
	if (!p)
		return;
	timer_stop(&p->loop->timers, &p->done);
	for (int i = 0; i < p->nserver; i++)
		channel_free(&p->server[i].channel);
	free(p);
	*pp = NULL;
}

enum probe_state probe_state(const struct probe *p)
{
	return p->state;
}

enum query_edns probe_edns(const struct probe *p)
{
	for (int i = 0; i < p->nserver; i++)
		if (p->server[i].finding == FINDING_NONE && !takes_edns(&p->server[i]))
			return QUERY_PLAIN;
	return QUERY_EDNS;
}

int probe_servers(const struct probe *p, union address server[PROBE_SERVERS_MAX])
{
	int n = 0;
	for (int i = 0; i < p->nserver; i++)
		if (p->server[i].finding == FINDING_DNSSEC)
			server[n++] = p->server[i].address;
	return n;
}

static bool in_round(const struct probe *p)
{
	return p->open > 0 || timer_active(&p->done);
}

void probe_again(struct probe *p)
{
	if (!in_round(p) && p->loop->now_ms >= p->again_ms &&
	    count_servers(p, FINDING_DNSSEC) < p->nserver)
		begin_round(p);
}

void probe_alive(struct probe *p)
{
	if (p->state != PROBE_SILENT)
		return;
	p->state = PROBE_ASKING;
	p->alive = true;
	if (!in_round(p))
		begin_round(p);
}
