/* SPDX-License-Identifier: ISC */
#include "qmgr/dest/host.h"

#include "base/about.h"
#include "base/address.h"
#include "base/credential.h"
#include "base/date.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/number.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { GOOD_FOR_MS = 10000, SLOW_STAYS_MS = 600000 };

static const struct {
	const char *text;
	unsigned may_follow;
} states[] = {
#define X(state, text, may_follow) {text, may_follow},
	HOST_STATES(X)
#undef X
};

static void host_move(struct host *h, enum host_state to)
{
	assert(states[h->state].may_follow & 1u << to);
	h->state = to;
}

/* Time of day of something on the steady clock. */
static const char *time_text(int64_t steady_ms, int64_t now_ms)
{
	return log_time(date_ms() + steady_ms - now_ms);
}

/* node: which has found that; NULL: we did. */
static void log_state(const struct host *h, const char *state, const char *until, const char *node)
{
	log_event(LOG_LEVEL_INFO, "host", "host", h->peer, "state", state, "until", until, "limit",
		  h->limit.n > 0 ? log_number(h->limit.n) : NULL, "failures",
		  h->failures > 0 ? log_number(h->failures) : NULL, "reason",
		  h->why ? log_reply(h->why->code, h->why->text) : NULL, "node", node, NULL);
}

static void keep_why(struct host *h, struct verdict *why, const char *name)
{
	assert(why);
	verdict_unref(h->why);
	free(h->why_name);
	h->why = verdict_ref(why);
	h->why_name = mem_strdup(name);
}

static void forget_why(struct host *h)
{
	verdict_unref(h->why);
	free(h->why_name);
	h->why = NULL;
	h->why_name = NULL;
}

static void forget_failures(struct host *h)
{
	h->failures = 0;
	h->failing_ms = 0;
}

static int64_t backoff_ms(const struct host *h, int64_t now_ms, int64_t most_ms)
{
	int64_t ms = HOST_BACKOFF_FIRST_MS;
	for (int i = 1; i < h->failures && ms < most_ms; i++)
		ms *= 2;
	if (h->failures >= HOST_ABOUT_FAILURES)
		ms = about_ms(ms, now_ms);
	return number_min(ms, most_ms);
}

/* Whoever guesses passwords is locked out. A token is no guess, and the next one may be there already. */
static bool is_password_refused(const struct host *h)
{
	return h->login_refused && !(h->credential && h->credential->kind != CREDENTIAL_PASSWORD);
}

bool host_failed(struct host *h, struct verdict *why, const char *name, unsigned era,
		 int64_t now_ms, int64_t backoff_max_ms)
{
	bool was_up = h->state == HOST_UP;
	keep_why(h, why, name);
	/* The connection was begun before the host was known to be out: the same failure once more. */
	if (era != h->era)
		return false;
	h->era++;
	if (h->failures < HOST_COUNT_MAX)
		h->failures++;
	if (h->failing_ms == 0)
		h->failing_ms = now_ms;
	h->failed_ms = now_ms;
	h->retry_ms = now_ms + (is_password_refused(h) ? backoff_max_ms
						       : backoff_ms(h, now_ms, backoff_max_ms));
	if (h->state != HOST_OUT)
		host_move(h, HOST_OUT);
	log_state(h, "out", time_text(h->retry_ms, now_ms), NULL);
	return was_up;
}

void host_cap_backoff(struct host *h, int64_t backoff_max_ms, int64_t now_ms)
{
	int64_t since_ms = h->failed_ms > 0 ? h->failed_ms : now_ms;
	if (h->state == HOST_OUT && h->retry_ms > since_ms + backoff_max_ms)
		h->retry_ms = since_ms + backoff_max_ms;
}

void host_login_refused(struct host *h, bool refused, const struct verdict *why)
{
	if (refused && !h->login_refused)
		log_event(LOG_LEVEL_WARNING, "login", "host", h->peer, "login",
			  h->credential ? h->credential->login : "", "result", "refused", "dsn",
			  why->dsn, "reply", log_reply(why->code, why->text), NULL);
	h->login_refused = refused;
}

static int64_t next_wait_ms(int64_t last_ms)
{
	int64_t next_ms = last_ms * 2;
	if (last_ms < HOST_LIMIT_CHANCE_MS)
		return HOST_LIMIT_CHANCE_MS;
	if (last_ms < HOST_LIMIT_TWICE_MS)
		return HOST_LIMIT_TWICE_MS;
	if (last_ms < HOST_LIMIT_FIRST_MS)
		return HOST_LIMIT_FIRST_MS;
	return next_ms < HOST_LIMIT_MOST_MS ? next_ms : HOST_LIMIT_MOST_MS;
}

bool host_hung(struct host *h, int64_t opened_ms, int64_t now_ms)
{
	if (h->hung_ms == 0)
		h->hung_ms = now_ms;
	return opened_ms >= h->hung_ms;
}

/* So many serve: those of other nodes, too. */
static int taken_by_all(const struct host *h)
{
	return h->ready + (int)h->leased.others;
}

bool host_turned_away(struct host *h, struct verdict *why, const char *name, int64_t now_ms)
{
	struct host_limit *l = &h->limit;
	bool tried_again = l->n > 0 && now_ms >= l->again_ms;
	int taken = taken_by_all(h);
	if (l->n > 0 && !tried_again && taken >= l->n)
		return false; /* begun before the limit was known, or while it was being tried */
	bool same = l->n == taken;
	keep_why(h, why, name);
	l->n = taken;
	l->wait_ms = next_wait_ms(same && tried_again ? l->wait_ms : 0);
	l->again_ms = now_ms + l->wait_ms;
	if (!same)
		log_state(h, "limited", time_text(l->again_ms, now_ms), NULL);
	return !same;
}

bool host_worked(struct host *h, int64_t now_ms)
{
	bool back = h->state != HOST_UP;
	if (back)
		host_move(h, HOST_UP);
	if (back || !h->proven)
		log_state(h, back ? "back" : "ready", NULL, NULL);
	h->hung_ms = 0;
	h->proven = true;
	h->refuses = h->unfit = h->login_refused = false;
	if (!h->told)
		forget_failures(h);
	h->retry_ms = 0;
	/* The host takes more than it did: how much more is found out at once. */
	if (h->limit.n > 0 && taken_by_all(h) > h->limit.n) {
		h->limit.n = taken_by_all(h);
		h->limit.wait_ms = 0;
		h->limit.again_ms = now_ms;
	} else if (h->limit.n == 0) {
		forget_why(h);
	}
	return back;
}

void host_carried(struct host *h)
{
	if (h->told)
		forget_failures(h);
	h->told = false;
}

const char *host_terms(const struct host *h)
{
	char where[ADDRESS_WHERE_MAX];
	size_t address = strlen(address_where(&h->address, where));
	assert(address < strlen(h->key));
	return h->key + address;
}

int64_t host_pace_units(double rate)
{
	int64_t n = (int64_t)(rate * HOST_PACE_UNIT);
	return rate > 0 && n == 0 ? 1 : n;
}

void host_paced(struct host *h, double rate, int64_t since_ms, struct verdict *why)
{
	assert(rate >= 0);
	verdict_ref(why); /* before the other goes: it may be the same */
	verdict_unref(h->pace.why);
	h->pace = (struct host_pace){.rate = rate, .since_ms = since_ms, .why = why};
}

void host_probe(struct host *h)
{
	host_move(h, HOST_PROBED);
}

void host_probe_missed(struct host *h, int64_t now_ms)
{
	if (h->state != HOST_PROBED || h->connections > 0)
		return;
	host_move(h, HOST_OUT);
	h->retry_ms = now_ms + HOST_BACKOFF_FIRST_MS;
}

void host_recall_out(struct host *h, int64_t retry_ms)
{
	if (h->state != HOST_OUT) /* its line may be there twice */
		host_move(h, HOST_OUT);
	h->retry_ms = retry_ms;
}

void host_heard_out(struct host *h, const struct host *heard, const char *node, int64_t now_ms)
{
	bool was_up = h->state == HOST_UP;
	if (heard->why)
		keep_why(h, heard->why, heard->why_name);
	h->failures = heard->failures;
	h->failed_ms = now_ms;
	if (h->state == HOST_PROBED)
		return;
	h->era++;
	host_recall_out(h, heard->retry_ms > 0 ? heard->retry_ms : now_ms);
	if (was_up)
		log_state(h, "out", time_text(h->retry_ms, now_ms), node);
}

void host_heard_up(struct host *h, bool proven, const char *node)
{
	bool was_up = h->state == HOST_UP;
	h->proven |= proven;
	forget_failures(h);
	h->retry_ms = 0;
	if (was_up)
		return;
	host_move(h, HOST_UP);
	log_state(h, "back", NULL, node);
}

void host_wait_for_probe(struct host *h, int64_t now_ms)
{
	if (h->state == HOST_OUT && h->retry_ms < now_ms + HOST_BACKOFF_FIRST_MS)
		h->retry_ms = now_ms + HOST_BACKOFF_FIRST_MS;
}

bool host_probe_due(const struct host *h, int64_t now_ms)
{
	return h->state == HOST_OUT && !h->suspended && now_ms >= h->retry_ms;
}

void host_probe_now(struct host *h, int64_t now_ms)
{
	if (h->state == HOST_OUT)
		h->retry_ms = now_ms;
}

void host_forget(struct host *h)
{
	if (h->state != HOST_UP)
		host_move(h, HOST_UP);
	forget_why(h);
	forget_failures(h);
	h->refuses = h->unfit = h->told = h->login_refused = false;
	h->proven = h->ready > 0;
	h->era++;
	h->retry_ms = h->slow_until_ms = 0;
	h->mode_until_ms = h->good_ms = h->opened_ms = 0;
	h->messages_until_ms = h->recipients_until_ms = 0;
	h->limit = (struct host_limit){0};
	h->hung_ms = 0;
	h->ended_after = h->hangs_up_after = 0;
	h->told_after = (struct host_told_after){0};
	h->ended_at = (struct host_ended_at){0};
	h->speed = (struct speed){0};
	host_fini(h);
}

void host_slow(struct host *h, int64_t now_ms)
{
	h->slow_until_ms = now_ms + SLOW_STAYS_MS;
}

bool host_silent(const struct host *h, int64_t now_ms)
{
	return h->ready == 0 && (host_out(h) || h->slow_until_ms > now_ms);
}

void host_ended_well(struct host *h, int64_t now_ms)
{
	h->good_ms = now_ms;
}

bool host_serves(const struct host *h, int64_t now_ms)
{
	return h->ready > 0 || (h->good_ms > 0 && now_ms < h->good_ms + GOOD_FOR_MS);
}

bool host_out(const struct host *h)
{
	return h->suspended || h->state != HOST_UP;
}

bool host_answers(const struct host *h)
{
	return h->unanswered == 0 || h->ready > 0;
}

bool host_has_room(const struct host *h, int64_t host_limit, int64_t now_ms)
{
	const struct host_limit *l = &h->limit;
	if (h->told && h->connections > 0)
		return false; /* one message asks */
	if (h->leased.shared)
		return leased_room(h, host_limit, now_ms);
	if (host_limit > 0 && h->connections >= host_limit)
		return false;
	return l->n == 0 || h->connections < l->n ||
	       (h->connections == l->n && now_ms >= l->again_ms);
}

int64_t host_room_ms(const struct host *h)
{
	return h->limit.n > 0 ? h->limit.again_ms : 0;
}

static struct host_plain *find_plain(const struct host *h, const char *name)
{
	struct host_plain *p = h->plain;
	while (p && strcmp(p->name, name) != 0)
		p = p->next;
	return p;
}

int64_t host_plain_until_ms(const struct host *h, const char *name)
{
	const struct host_plain *p = find_plain(h, name);
	return p ? p->until_ms : 0;
}

bool host_plain(const struct host *h, const char *name, int64_t now_ms)
{
	return host_plain_until_ms(h, name) > now_ms;
}

static struct host_plain *add_plain(struct host *h, const char *name)
{
	size_t size = strlen(name) + 1;
	struct host_plain *p = mem_zalloc(sizeof *p + size);
	memcpy(p->name, name, size);
	p->next = h->plain;
	h->plain = p;
	return p;
}

/* Any domain may give the address a name. */
static void make_room_for_plain(struct host *h)
{
	struct host_plain **first = NULL;
	int n = 0;
	for (struct host_plain **p = &h->plain; *p; p = &(*p)->next, n++)
		if (!first || (*p)->until_ms < (*first)->until_ms)
			first = p;
	if (n < HOST_PLAIN_NAMES)
		return;
	struct host_plain *gone = *first;
	*first = gone->next;
	free(gone);
}

void host_set_plain(struct host *h, const char *name, int64_t until_ms)
{
	struct host_plain *p = find_plain(h, name);
	if (!p) {
		make_room_for_plain(h);
		p = add_plain(h, name);
	}
	p->until_ms = until_ms;
}

void host_fini(struct host *h)
{
	for (struct host_plain *p; (p = h->plain) != NULL;) {
		h->plain = p->next;
		free(p);
	}
	forget_why(h);
	host_paced(h, 0, 0, NULL);
}

bool host_stale(const struct host *h, int64_t now_ms)
{
	int64_t plain_ms = 0;
	for (const struct host_plain *p = h->plain; p; p = p->next)
		plain_ms = p->until_ms > plain_ms ? p->until_ms : plain_ms;
	return h->refs == 0 && h->retry_ms < now_ms && plain_ms < now_ms &&
	       h->mode_until_ms < now_ms && h->messages_until_ms < now_ms &&
	       h->recipients_until_ms < now_ms && h->limit.again_ms < now_ms &&
	       h->opened_ms < now_ms - HOST_STALE_MS && h->failed_ms < now_ms - HOST_STALE_MS;
}

const char *host_mode_name(enum connection_mode mode)
{
	static const char *const names[][2][2] = {
		{{"full", "no chunking"}, {"small hello", "no chunking, small hello"}},
		{{"apart", "apart, no chunking"},
		 {"apart, small hello", "apart, no chunking, small hello"}},
		{{"lockstep", "lockstep, no chunking"},
		 {"lockstep, small hello", "lockstep, no chunking, small hello"}},
	};
	int pace = mode & CONNECTION_LOCKSTEP ? 2 : mode & CONNECTION_APART ? 1 : 0;
	return names[pace][(mode & CONNECTION_SMALL_HELLO) != 0]
		    [(mode & CONNECTION_NO_CHUNKING) != 0];
}

enum connection_mode host_mode(const struct host *h, int64_t now_ms)
{
	return now_ms < h->mode_until_ms ? h->mode : CONNECTION_FULL;
}

void host_confused(struct host *h, enum connection_mode next, struct verdict *why, const char *name,
		   int64_t now_ms)
{
	enum connection_mode before = host_mode(h, now_ms);
	h->mode = before | next;
	h->mode_until_ms = now_ms + HOST_MODE_MS;
	if (h->mode == before)
		return; /* other connections find the same */
	struct verdict *said = why ? host_called(why, name, "") : NULL;
	log_event(LOG_LEVEL_WARNING, "host", "host", h->peer, "mode", host_mode_name(h->mode),
		  "reason", said ? log_reply(said->code, said->text) : "it gave a reply too many",
		  NULL);
	verdict_unref(said);
}

int host_messages_most(const struct host *h, int64_t now_ms)
{
	return now_ms < h->messages_until_ms ? h->messages_most : 0;
}

void host_takes_messages(struct host *h, int messages, int64_t now_ms)
{
	assert(messages > 0);
	int before = host_messages_most(h, now_ms);
	h->messages_most = before > 0 && before < messages ? before : messages;
	h->messages_until_ms = now_ms + HOST_MODE_MS;
	if (h->messages_most != before)
		log_event(LOG_LEVEL_INFO, "host", "host", h->peer, "state", "limited", "messages",
			  log_number(h->messages_most), "reason",
			  "it takes no more on one connection", NULL);
}

void host_hung_up(struct host *h, int messages)
{
	if (h->hangs_up_after < messages)
		h->hangs_up_after = messages;
}

void host_ended_after(struct host *h, int messages, int64_t now_ms)
{
	if (h->ended_after == messages)
		host_takes_messages(h, messages, now_ms);
	h->ended_after = messages;
}

bool host_told_after(struct host *h, int messages, int64_t now_ms)
{
	struct host_told_after *t = &h->told_after;
	int before = host_messages_most(h, now_ms);
	if (messages != t->messages)
		*t = (struct host_told_after){.messages = messages, .times = 1};
	else if (t->took)
		t->times++;
	t->took = false;
	if (t->times < HOST_TOLD_ALIKE || messages < 2)
		return false;
	host_takes_messages(h, messages, now_ms);
	return host_messages_most(h, now_ms) != before;
}

uint32_t host_recipients_most(const struct host *h, int64_t now_ms)
{
	return now_ms < h->recipients_until_ms ? h->recipients_most : 0;
}

static void takes_recipients(struct host *h, uint32_t recipients, int64_t now_ms)
{
	h->recipients_most = recipients;
	h->recipients_until_ms = now_ms + HOST_MODE_MS;
	log_event(LOG_LEVEL_INFO, "host", "host", h->peer, "state", "limited", "recipients",
		  log_number(recipients), "reason", "it takes no more at once", NULL);
}

bool host_ended_at(struct host *h, uint32_t recipients, bool told, int64_t now_ms)
{
	assert(recipients > 0);
	uint32_t known = host_recipients_most(h, now_ms);
	bool again = recipients == h->ended_at.recipients && h->ended_at.took;
	h->ended_at = (struct host_ended_at){.recipients = recipients};
	if ((!told && !again) || (known > 0 && known <= recipients))
		return false;
	takes_recipients(h, recipients, now_ms);
	return true;
}

void host_took_message(struct host *h)
{
	h->told_after.took = h->ended_at.took = true;
}

struct verdict *host_why(const struct host *h, const char *name)
{
	return h->why ? host_called(h->why, h->why_name, name) : NULL;
}

/* The text with each "from[" replaced by "to[": so names stand before addresses. */
static char *replace_name(const char *text, const char *from, const char *to)
{
	struct buf out = {0};
	size_t len = strlen(from);
	while (*text) {
		if (strncmp(text, from, len) == 0 && text[len] == '[') {
			buf_puts(&out, to);
			text += len;
		}
		buf_append(&out, text++, 1);
	}
	return buf_steal(&out, NULL);
}

struct verdict *host_called(struct verdict *v, const char *from, const char *to)
{
	if (!from || !*from || strcmp(from, to) == 0)
		return verdict_ref(v);
	char *text = replace_name(v->text, from, to), *host = replace_name(v->host, from, to);
	struct verdict *other = verdict_reworded(v, v->class, v->dsn, host, text);
	free(text);
	free(host);
	return other;
}

void host_unref(struct host *h)
{
	assert(h->refs > 0);
	h->refs--;
}
