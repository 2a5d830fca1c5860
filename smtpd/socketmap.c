/* SPDX-License-Identifier: ISC */
#include "smtpd/socketmap.h"

#include "base/clock.h"
#include "base/condition.h"
#include "base/keyed_hash.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/stream.h"
#include "base/tables.h"
#include "smtpd/socketmap_question.h"
#include "smtpd/socketmap_reply.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
	REST_FIRST_MS = 100,
	REST_MOST_MS = 5000,
	NOTED = 8, /* of the time of an answer such a part counts */
};

enum connection_state {
	CONNECTION_CLOSED,
	CONNECTION_CONNECTING,
	CONNECTION_IDLE,
	CONNECTION_BUSY
};

/* Who is no session, and waits for an answer. */
struct asker {
	uint64_t number;
	socketmap_answered *answered;
	void *owner;
	UT_hash_handle hh;
};

struct server;

struct connection {
	struct server *server;
	struct stream *stream; /* NULL: CLOSED */
	enum connection_state state;
	struct socketmap_question *question; /* BUSY; else NULL */
	struct buf reply; /* as far as it has come: it may be longer than a stream's input */
	bool used;	  /* it has answered before */
};

struct server {
	struct list link;
	struct socketmaps *all;
	char *where;
	union address to;
	struct connection connection[SOCKETMAP_CONNECTIONS];
	struct list waiting; /* questions */
	struct socketmap_question
		*open; /* those that others may join, by what their answer is known as */
	int nwaiting;
	struct timer rest; /* active: it rests */
	int64_t rest_ms, heard_ms;
	int64_t takes_ms; /* for an answer, lately */
	bool unwell;	  /* it could be reached, and yet not be asked */
	bool named;	  /* by some table, while they are looked through */
};

/* An answer that is remembered. uthash keeps them in the order in which they came. */
struct known {
	char *key;
	char *value; /* NULL: there is none */
	size_t bytes;
	int64_t until_ms;
	UT_hash_handle hh;
};

struct socketmaps {
	struct loop *loop;
	int64_t timeout_ms, cache_ms;
	struct list servers;
	struct known *known;
	size_t known_bytes;
	struct asker *askers;
	uint64_t numbered; /* so many have asked */
	bool ending;	   /* nobody waits any more */
};

/* Some server was in trouble, for some worker: only then is there a condition to end. */
static atomic_bool troubled;

static void forget_known(struct socketmaps *m, struct known *k)
{
	HASH_DEL(m->known, k);
	assert(m->known_bytes >= k->bytes);
	m->known_bytes -= k->bytes;
	free(k->key);
	free(k->value);
	free(k);
}

static void forget_all(struct socketmaps *m)
{
	hash_each (struct known, k, m->known)
		forget_known(m, k);
	assert(m->known_bytes == 0);
}

static void remember_answer(struct socketmaps *m, const char *key, const char *value)
{
	struct known *k;
	HASH_FIND_STR(m->known, key, k);
	if (k)
		forget_known(m, k);
	if (m->cache_ms == 0)
		return;
	k = mem_zalloc(sizeof *k);
	k->key = mem_strdup(key);
	k->value = mem_strdup(value);
	k->bytes = sizeof *k + strlen(key) + (value ? strlen(value) : 0);
	k->until_ms = clock_steady_ms() + m->cache_ms;
	m->known_bytes += k->bytes;
	HASH_ADD_KEYPTR(hh, m->known, k->key, strlen(k->key), k);
	while (HASH_COUNT(m->known) > SOCKETMAP_KNOWN_MAX || m->known_bytes > SOCKETMAP_KNOWN_BYTES)
		forget_known(m, m->known);
}

static char *known_as(const struct socketmap_name *n, const char *key)
{
	return mem_printf("%.*s %s %s", (int)n->server_len, n->server, n->name, key);
}

bool socketmap_known(struct socketmaps *m, const struct socketmap_name *n, const char *key,
		     char **value)
{
	char *text = known_as(n, key);
	struct known *k;
	HASH_FIND_STR(m->known, text, k);
	free(text);
	if (k && k->until_ms <= clock_steady_ms()) {
		forget_known(m, k);
		k = NULL;
	}
	if (k)
		*value = mem_strdup(k->value);
	return k != NULL;
}

/* Nobody joins it any more. */
static void close_question(struct server *s, struct socketmap_question *q)
{
	if (q->open)
		HASH_DEL(s->open, q);
	q->open = false;
}

static void free_question(struct server *s, struct socketmap_question *q)
{
	close_question(s, q);
	socketmap_question_free(&q);
}

/* The question is freed. */
static void answer_question(struct server *s, struct socketmap_question *q,
			    enum socketmap_result result, const char *text)
{
	if (!s->all->ending)
		socketmap_question_answer(q, s->all->loop, result, text);
	if (result != SOCKETMAP_FAILED && q->open)
		remember_answer(s->all, q->known, text);
	free_question(s, q);
}

static struct socketmap_question *take_out(struct server *s, struct list *link)
{
	list_remove(link);
	assert(s->nwaiting > 0);
	s->nwaiting--;
	return list_entry(link, struct socketmap_question, link);
}

static struct socketmap_question *take_waiting(struct server *s)
{
	struct list *first = list_first(&s->waiting);
	return first ? take_out(s, first) : NULL;
}

/* Others wait behind what is not asked yet. The answer to what is asked is remembered. */
static void drop_waiting(struct socketmaps *m, uint64_t cookie, bool of_asker)
{
	list_each_entry (struct server, s, link, &m->servers) {
		list_each_entry (struct socketmap_question, q, link, &s->waiting)
			if (!socketmap_question_leave(q, cookie, of_asker))
				free_question(s, take_out(s, &q->link));
	}
}

static void log_server(const struct server *s, const char *reason)
{
	atomic_store_explicit(&troubled, true, memory_order_relaxed);
	condition_set(CONDITION_socketmap_away, s->where, reason);
}

static void tell_good(struct server *s)
{
	s->rest_ms = REST_FIRST_MS;
	s->unwell = false;
	timer_stop(&s->all->loop->timers, &s->rest);
	if (atomic_load_explicit(&troubled, memory_order_relaxed))
		condition_clear(CONDITION_socketmap_away, s->where);
}

static void close_connection(struct connection *c)
{
	assert(!c->question);
	if (c->stream)
		stream_free(&c->stream);
	buf_fini(&c->reply);
	c->state = CONNECTION_CLOSED;
	c->used = false;
}

/* Nobody is asked for a while; who waits is told so. */
static void rest_server(struct server *s, const char *reason)
{
	struct socketmap_question *q;
	log_server(s, reason);
	while ((q = take_waiting(s)))
		answer_question(s, q, SOCKETMAP_FAILED, reason);
	if (timer_active(&s->rest))
		return;
	loop_timer_in(s->all->loop, &s->rest, s->rest_ms);
	s->rest_ms = s->rest_ms * 2 > REST_MOST_MS ? REST_MOST_MS : s->rest_ms * 2;
}

static void on_event(void *owner, enum stream_event);

static void connect_one(struct connection *c)
{
	struct socketmaps *m = c->server->all;
	assert(c->state == CONNECTION_CLOSED && !c->stream);
	c->state = CONNECTION_CONNECTING;
	c->stream = stream_connect(m->loop, &c->server->to, NULL, on_event, c);
	stream_deadline(c->stream, m->timeout_ms);
}

static void send_question(struct connection *c, struct socketmap_question *q)
{
	int64_t now = clock_steady_ms(), left = socketmap_question_due_ms(q) - now;
	assert(c->state == CONNECTION_IDLE && !c->question);
	c->question = q;
	c->state = CONNECTION_BUSY;
	q->sent_ms = now;
	socketmap_reply_ask(stream_out(c->stream), q->name, q->key);
	stream_deadline(c->stream, left > 0 ? left : 1);
	stream_flush(c->stream);
}

static void note_answer_time(struct server *s, int64_t ms)
{
	s->takes_ms += (ms - s->takes_ms) / NOTED;
}

/* Without an answer that is the least that it would have taken. */
static void note_silence(struct server *s, int64_t ms)
{
	s->takes_ms = ms > s->takes_ms ? ms : s->takes_ms;
}

/* So much of its time a question must have left: twice what answers take, but no more than half of all. */
static int64_t least_left(const struct server *s)
{
	int64_t twice = 2 * s->takes_ms, half = s->all->timeout_ms / 2;
	return twice < half ? twice : half;
}

/* Asked at the very end of its time it would have no answer, and cost the others a connection: with all of them so late,
 * nobody would have any. */
static void refuse_late(struct server *s)
{
	int64_t soonest = clock_steady_ms() + least_left(s);
	list_each_entry (struct socketmap_question, q, link, &s->waiting) {
		if (!q->again &&
		    !socketmap_question_refuse_late(q, s->all->loop, soonest,
						    "it is asked more than it answers in time"))
			free_question(s, take_out(s, &q->link));
	}
}

/* As many as wait get a connection, as far as there are some. */
static void pump_questions(struct server *s)
{
	refuse_late(s);
	int wanted = s->nwaiting;
	if (timer_active(&s->rest))
		return;
	for (int i = 0; i < SOCKETMAP_CONNECTIONS && s->nwaiting > 0; i++)
		if (s->connection[i].state == CONNECTION_IDLE) {
			send_question(&s->connection[i], take_waiting(s));
			wanted--;
		}
	for (int i = 0; i < SOCKETMAP_CONNECTIONS; i++)
		wanted -= s->connection[i].state == CONNECTION_CONNECTING;
	for (int i = 0; i < SOCKETMAP_CONNECTIONS && wanted > 0; i++)
		if (s->connection[i].state == CONNECTION_CLOSED) {
			connect_one(&s->connection[i]);
			wanted--;
		}
}

/* The connection is of no use any more, and what it was asked not answered. */
static void lose_connection(struct connection *c, const char *reason, bool hangs)
{
	struct server *s = c->server;
	struct socketmap_question *q = c->question;
	assert(c->state != CONNECTION_CLOSED);
	char *why = mem_strdup(reason);
	/* Others had their answers meanwhile: it is this question that takes it so long. */
	bool alive = q && hangs && s->heard_ms >= q->sent_ms;
	/* The server had closed the connection when the question was on its way. */
	bool again = q && c->used && !hangs && !q->again && !timer_active(&s->rest) &&
		     buf_len(&c->reply) == 0;
	if (q && hangs)
		note_silence(s, clock_steady_ms() - q->sent_ms);
	s->unwell = s->unwell || (q && !again);
	c->question = NULL;
	close_connection(c);
	if (again) {
		q->again = true;
		list_insert_before(s->waiting.next, &q->link);
		s->nwaiting++;
	} else if (q) {
		answer_question(s, q, SOCKETMAP_FAILED, why);
	}
	if (!again && !alive)
		rest_server(s, why);
	else if (alive)
		log_server(s, why);
	free(why);
	pump_questions(s);
}

static void take_reply(struct connection *c, enum socketmap_said said,
		       const struct socketmap_reply *r)
{
	struct server *s = c->server;
	struct socketmap_question *q = c->question;
	assert(c->state == CONNECTION_BUSY && q);
	char *text = mem_strndup(r->text, r->len);
	bool more = buf_len(&c->reply) > r->used;
	buf_fini(&c->reply);
	stream_deadline(c->stream, 0);
	c->question = NULL;
	c->state = CONNECTION_IDLE;
	c->used = true;
	s->heard_ms = clock_steady_ms();
	note_answer_time(s, s->heard_ms - q->sent_ms);
	if (said == SOCKETMAP_REPLY_FAILED) {
		s->unwell = true;
		answer_question(s, q, SOCKETMAP_FAILED, text);
		log_server(s, text);
	} else {
		tell_good(s);
		answer_question(s, q, said == SOCKETMAP_REPLY_OK ? SOCKETMAP_FOUND : SOCKETMAP_NONE,
				said == SOCKETMAP_REPLY_OK ? text : NULL);
	}
	free(text);
	if (more)
		close_connection(c);
}

static void read_reply(struct connection *c)
{
	struct buf *in = stream_in(c->stream);
	struct socketmap_reply r;
	buf_append(&c->reply, buf_data(in), buf_len(in));
	buf_consume(in, buf_len(in));
	if (c->state != CONNECTION_BUSY) {
		close_connection(c);
		return;
	}
	enum socketmap_said said =
		socketmap_reply_read(buf_data(&c->reply), buf_len(&c->reply), &r);
	if (said == SOCKETMAP_REPLY_PART)
		return;
	if (said == SOCKETMAP_REPLY_BAD) {
		lose_connection(c, "that is no reply of a socketmap", false);
		return;
	}
	struct server *s = c->server;
	take_reply(c, said, &r);
	pump_questions(s);
}

static void become_connected(struct connection *c)
{
	assert(c->state == CONNECTION_CONNECTING);
	c->state = CONNECTION_IDLE;
	stream_deadline(c->stream, 0);
	if (!c->server->unwell)
		tell_good(c->server);
	pump_questions(c->server);
}

static void on_event(void *owner, enum stream_event event)
{
	struct connection *c = owner;
	bool asked = c->state != CONNECTION_IDLE;
	assert((c->state == CONNECTION_BUSY) == (c->question != NULL));
	switch (event) {
	case STREAM_CONNECTED:
		become_connected(c);
		break;
	case STREAM_DATA:
		read_reply(c);
		break;
	case STREAM_TIMEOUT:
		lose_connection(c, "it does not answer in time", true);
		break;
	case STREAM_EOF:
	case STREAM_ERROR:
		if (asked)
			lose_connection(c,
					event == STREAM_EOF ? "it has closed the connection"
							    : stream_error(c->stream),
					false);
		else
			close_connection(c);
		break;
	default:
		break;
	}
}

/* Is it there again? */
static void end_rest(void *owner)
{
	struct server *s = owner;
	for (int i = 0; i < SOCKETMAP_CONNECTIONS; i++)
		if (s->connection[i].state != CONNECTION_CLOSED)
			return;
	connect_one(&s->connection[0]);
}

static struct server *server_of(struct socketmaps *m, const struct socketmap_name *n, bool make)
{
	list_each_entry (struct server, s, link, &m->servers) {
		if (strlen(s->where) == n->server_len &&
		    strncmp(s->where, n->server, n->server_len) == 0)
			return s;
	}
	if (!make)
		return NULL;
	struct server *s = mem_zalloc(sizeof *s);
	s->all = m;
	s->where = mem_strndup(n->server, n->server_len);
	s->to = n->to;
	s->rest_ms = REST_FIRST_MS;
	list_init(&s->waiting);
	timer_init(&s->rest, end_rest, s);
	for (int i = 0; i < SOCKETMAP_CONNECTIONS; i++)
		s->connection[i].server = s;
	list_append(&m->servers, &s->link);
	return s;
}

static void server_free(struct server *s)
{
	struct socketmap_question *q;
	timer_stop(&s->all->loop->timers, &s->rest);
	for (int i = 0; i < SOCKETMAP_CONNECTIONS; i++) {
		struct connection *c = &s->connection[i];
		q = c->question;
		c->question = NULL;
		if (q)
			answer_question(s, q, SOCKETMAP_FAILED, "it is not asked any more");
		close_connection(c);
	}
	while ((q = take_waiting(s)))
		answer_question(s, q, SOCKETMAP_FAILED, "it is not asked any more");
	assert(s->nwaiting == 0 && !s->open);
	list_remove(&s->link);
	free(s->where);
	free(s);
}

/* The one that is asked already, or another; NULL: too many wait. */
static struct socketmap_question *find_question(struct server *s, const struct socketmap_name *n,
						const char *key)
{
	struct socketmap_question *q;
	char *known = known_as(n, key);
	HASH_FIND_STR(s->open, known, q);
	if (q || s->nwaiting >= SOCKETMAP_WAITING_MAX) {
		free(known);
		return q;
	}
	q = socketmap_question_new(n->name, key, known);
	HASH_ADD_KEYPTR(hh, s->open, q->known, strlen(q->known), q);
	q->open = true;
	list_append(&s->waiting, &q->link);
	s->nwaiting++;
	return q;
}

static void ask_server(struct socketmaps *m, const struct socketmap_name *n, const char *key,
		       uint64_t cookie, bool of_asker)
{
	struct server *s = server_of(m, n, true);
	struct socketmap_question *q = timer_active(&s->rest) ? NULL : find_question(s, n, key);
	if (!q) {
		socketmap_question_post(m->loop, cookie, of_asker, SOCKETMAP_FAILED,
					"it did not answer before");
		return;
	}
	socketmap_question_join(q, cookie, of_asker, clock_steady_ms() + m->timeout_ms);
	pump_questions(s);
}

void socketmap_ask(struct socketmaps *m, const struct socketmap_name *n, const char *key,
		   uint64_t cookie)
{
	ask_server(m, n, key, cookie, false);
}

void socketmap_withdraw(struct socketmaps *m, uint64_t cookie)
{
	drop_waiting(m, cookie, false);
}

uint64_t socketmap_ask_for(struct socketmaps *m, const struct socketmap_name *n, const char *key,
			   socketmap_answered *answered, void *owner)
{
	struct asker *a = mem_zalloc(sizeof *a);
	uint64_t number = a->number = ++m->numbered;
	a->answered = answered;
	a->owner = owner;
	HASH_ADD(hh, m->askers, number, sizeof a->number, a);
	ask_server(m, n, key, number, true);
	return number;
}

/* Who asks is not there any more then. */
static bool take_asker(struct socketmaps *m, uint64_t number, struct asker *is)
{
	struct asker *a;
	HASH_FIND(hh, m->askers, &number, sizeof number, a);
	if (!a)
		return false;
	HASH_DEL(m->askers, a);
	*is = *a;
	free(a);
	return true;
}

void socketmap_forget(struct socketmaps *m, uint64_t number)
{
	struct asker a;
	take_asker(m, number, &a);
	drop_waiting(m, number, true);
}

void socketmap_receive(struct socketmaps *m, struct note *note)
{
	struct socketmap_answer *answer = (struct socketmap_answer *)note;
	struct asker a;
	if (m && take_asker(m, answer->answer.cookie, &a))
		a.answered(a.owner, answer);
	answer->answer.free(&answer->answer);
}

static void mark_named(struct socketmaps *m, const struct tables *t, enum table_role role)
{
	const struct socketmap_name *name;
	struct table_origin origin;
	for (int i = 0; t && i < tables_count(t, role); i++) {
		free(tables_get_at(t, role, i, "", &name, &origin));
		struct server *s = name ? server_of(m, name, false) : NULL;
		if (s)
			s->named = true;
	}
}

/* The answer to what was asked before is one from before. */
static void close_questions(struct server *s)
{
	hash_each (struct socketmap_question, q, s->open)
		close_question(s, q);
}

void socketmaps_use(struct socketmaps *m, const struct conf *c)
{
	m->timeout_ms = c->socketmap_timeout;
	m->cache_ms = c->socketmap_cache;
	forget_all(m);
	for (int role = 0; role < TABLE_ROLES; role++)
		mark_named(m, c->tables, (enum table_role)role);
	list_each_entry (struct server, s, link, &m->servers) {
		if (!s->named) {
			condition_clear(CONDITION_socketmap_away, s->where);
			server_free(s);
		} else {
			s->named = false;
			close_questions(s);
		}
	}
}

struct socketmaps *socketmaps_new(struct loop *loop)
{
	struct socketmaps *m = mem_zalloc(sizeof *m);
	m->loop = loop;
	list_init(&m->servers);
	return m;
}

void socketmaps_free(struct socketmaps **mp)
{
	struct socketmaps *m = *mp;
	if (!m)
		return;
	m->ending = true;
	list_each (link, tmp, &m->servers)
		server_free(list_entry(link, struct server, link));
	forget_all(m);
	assert(!m->askers);
	free(m);
	*mp = NULL;
}
