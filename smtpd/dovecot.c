/* SPDX-License-Identifier: ISC */
#include "smtpd/dovecot.h"

#include "base/address.h"
#include "base/base64.h"
#include "base/clock.h"
#include "base/file_io.h"
#include "base/keyed_hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/stream.h"
#include "base/users.h"
#include "smtpd/dovecot_line.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/rand.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
	LINE_MAX_BYTES = 16 << 10, /* of either side */
	OUT_MAX = 1 << 20,	   /* bytes that it has not read: it hangs */
	REST_FIRST_MS = 100,
	REST_MOST_MS = 5000,
	STEADY_MS = 1000, /* a connection that was good for so long is made again at once */
};

enum dovecot_state { DOVECOT_OFF, DOVECOT_RESTING, DOVECOT_CONNECTING, DOVECOT_READY };

/* One exchange. */
struct exchange {
	uint32_t id;
	uint64_t cookie; /* 0: the client is to speak */
	char *held;	 /* its first line, until the connection is ready */
	UT_hash_handle hh;
};

struct dovecot {
	struct loop *loop;
	enum dovecot_state state;
	char *where;
	int64_t timeout_ms, rest_ms, ready_ms; /* ready_ms: steady clock, since when */
	struct timer timer;		       /* RESTING: its end; CONNECTING: the deadline */
	struct stream *stream;
	bool versioned;		 /* it has said which protocol it speaks */
	bool told;		 /* its mechanisms are known */
	bool unasked;		 /* READY, and what is held is to be asked */
	unsigned can, announced; /* bits of enum mechanism; announced: of the handshake at work */
	uint32_t next_id;
	struct exchange *exchanges;
};

/* The state that was logged last, for all workers. */
static _Atomic int said = DOVECOT_OFF;

static void log_state(const struct dovecot *d, enum dovecot_state state, const char *reason)
{
	if (atomic_exchange_explicit(&said, state, memory_order_relaxed) == (int)state)
		return;
	log_event(state == DOVECOT_READY ? LOG_LEVEL_INFO : LOG_LEVEL_ERROR, "dovecot", "address",
		  d->where, "state", state == DOVECOT_READY ? "ready" : "away", "reason", reason,
		  NULL);
}

static void free_answer(struct wait_answer *a)
{
	struct dovecot_answer *answer = (struct dovecot_answer *)a;
	free(answer->user);
	mem_free_secret(answer->challenge);
	free(answer);
}

static void post_outcome(struct dovecot *d, struct exchange *x, enum dovecot_outcome outcome,
			 const char *user, const char *challenge)
{
	struct dovecot_answer *a = mem_zalloc(sizeof *a);
	a->answer =
		(struct wait_answer){.reply_to = d->loop, .cookie = x->cookie, .free = free_answer};
	a->outcome = outcome;
	a->user = mem_strdup(user);
	a->challenge = mem_strdup(challenge);
	x->cookie = 0;
	wait_answer_post(&a->answer);
}

static void drop_exchange(struct dovecot *d, struct exchange *x)
{
	HASH_DEL(d->exchanges, x);
	mem_free_secret(x->held);
	free(x);
}

static void drop_all(struct dovecot *d)
{
	hash_each (struct exchange, x, d->exchanges) {
		if (x->cookie)
			post_outcome(d, x, DOVECOT_AWAY, NULL, NULL);
		drop_exchange(d, x);
	}
}

static void close_connection(struct dovecot *d)
{
	if (d->stream)
		stream_free(&d->stream);
	timer_stop(&d->loop->timers, &d->timer);
	drop_all(d);
}

static void begin_rest(struct dovecot *d, int64_t ms)
{
	d->state = DOVECOT_RESTING;
	loop_timer_in(d->loop, &d->timer, ms);
}

static void connect_now(struct dovecot *);

/* The connection is of no use any more. One that was good for a while is made again at once. */
static void lose_connection(struct dovecot *d, const char *reason)
{
	bool steady = d->state == DOVECOT_READY && clock_steady_ms() - d->ready_ms >= STEADY_MS;
	char *why = mem_strdup(reason);
	close_connection(d);
	log_state(d, DOVECOT_RESTING, why);
	free(why);
	if (steady) {
		connect_now(d);
		return;
	}
	begin_rest(d, d->rest_ms);
	d->rest_ms = d->rest_ms * 2 > REST_MOST_MS ? REST_MOST_MS : d->rest_ms * 2;
}

static void send_line(struct dovecot *d, const char *line)
{
	buf_puts(stream_out(d->stream), line);
	stream_flush(d->stream);
}

static void become_ready(struct dovecot *d)
{
	timer_stop(&d->loop->timers, &d->timer);
	d->state = DOVECOT_READY;
	d->unasked = true;
	d->ready_ms = clock_steady_ms();
	d->can = d->announced;
	d->told = true;
	d->rest_ms = REST_FIRST_MS;
	log_state(d, DOVECOT_READY, NULL);
}

/* Ask the questions that have waited for the greeting, behind all that came with it: that answers nobody. */
static void ask_held(struct dovecot *d)
{
	d->unasked = false;
	hash_each (struct exchange, x, d->exchanges) {
		send_line(d, x->held);
		mem_free_secret(x->held);
		x->held = NULL;
	}
}

static void note_mechanism(struct dovecot *d, struct dovecot_line *l)
{
	enum mechanism m = mechanism_find(dovecot_line_next(l, NULL));
	if (m != MECHANISM_COUNT && !mechanism_row(m)->plus)
		d->announced |= MECHANISM_BIT(m);
}

/* False: that is not how a Dovecot begins. */
static bool take_greeting(struct dovecot *d, const char *word, struct dovecot_line *l)
{
	uint32_t major;
	if (!d->versioned) {
		d->versioned = strcmp(word, "VERSION") == 0 && dovecot_line_number(l, &major) &&
			       major == 1;
		return d->versioned;
	}
	if (strcmp(word, "MECH") == 0)
		note_mechanism(d, l);
	else if (strcmp(word, "DONE") == 0)
		become_ready(d);
	return true;
}

static struct exchange *take_exchange(struct dovecot *d, struct dovecot_line *l)
{
	struct exchange *x = NULL;
	uint32_t id;
	if (dovecot_line_number(l, &id))
		HASH_FIND(hh, d->exchanges, &id, sizeof id, x);
	return x && x->cookie && !x->held ? x : NULL;
}

/* A name that can be logged, as it is looked up: Dovecot hands on how the client has written it. */
static bool good_user(const char *user, char login[USERS_LOGIN_MAX + 1])
{
	for (const char *c = user; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 127)
			return false;
	return users_folded(user, login);
}

static enum dovecot_outcome outcome_of(const char *word)
{
	const char *code = dovecot_line_value(word, "code");
	if (dovecot_line_value(word, "temp") || (code && strcmp(code, "temp_fail") == 0))
		return DOVECOT_AWAY;
	if (dovecot_line_value(word, "pass_expired") || (code && strcmp(code, "pass_expired") == 0))
		return DOVECOT_EXPIRED;
	if (dovecot_line_value(word, "user_disabled") ||
	    (code && strcmp(code, "user_disabled") == 0))
		return DOVECOT_DISABLED;
	return dovecot_line_value(word, "nologin") ? DOVECOT_SUSPENDED : DOVECOT_WRONG;
}

static void conclude_exchange(struct dovecot *d, struct exchange *x, struct dovecot_line *l,
			      bool ok)
{
	enum dovecot_outcome outcome = ok ? DOVECOT_OK : DOVECOT_WRONG;
	const char *user = NULL;
	char login[USERS_LOGIN_MAX + 1];
	bool more = true;
	while (more) {
		const char *word = dovecot_line_next(l, &more);
		enum dovecot_outcome said_here = outcome_of(word);
		if (said_here != DOVECOT_WRONG)
			outcome = said_here;
		if (dovecot_line_value(word, "user"))
			user = dovecot_line_value(word, "user");
	}
	if (user)
		user = good_user(user, login) ? login : NULL;
	/* Somebody, but who? */
	if (outcome == DOVECOT_OK && !user)
		outcome = DOVECOT_AWAY;
	post_outcome(d, x, outcome, user, NULL);
	drop_exchange(d, x);
}

static void post_challenge(struct dovecot *d, struct exchange *x, struct dovecot_line *l)
{
	struct buf unused = {0};
	const char *text = dovecot_line_next(l, NULL);
	if (base64_decode(&unused, text, strlen(text))) {
		post_outcome(d, x, DOVECOT_CONTINUE, NULL, text);
	} else {
		post_outcome(d, x, DOVECOT_AWAY, NULL, NULL);
		drop_exchange(d, x);
	}
	buf_wipe(&unused);
}

static void answer_exchange(struct dovecot *d, const char *word, struct dovecot_line *l)
{
	bool ok = strcmp(word, "OK") == 0;
	bool on = strcmp(word, "CONT") == 0;
	if (!ok && !on && strcmp(word, "FAIL") != 0)
		return; /* what later versions may say */
	struct exchange *x = take_exchange(d, l);
	if (!x)
		return; /* cancelled, or never asked */
	if (on)
		post_challenge(d, x, l);
	else
		conclude_exchange(d, x, l, ok);
}

/* One line. False: the connection is gone. */
static bool obey_line(struct dovecot *d, char *text)
{
	struct dovecot_line l;
	dovecot_line_init(&l, text);
	const char *word = dovecot_line_next(&l, NULL);
	if (d->state == DOVECOT_READY) {
		answer_exchange(d, word, &l);
		return true;
	}
	if (take_greeting(d, word, &l))
		return true;
	lose_connection(d, "that is no auth socket of Dovecot");
	return false;
}

static void read_lines(struct dovecot *d)
{
	struct buf *in = stream_in(d->stream);
	char *end;
	while (buf_len(in) > 0 && (end = memchr(buf_data(in), '\n', buf_len(in)))) {
		char *line = buf_data(in);
		size_t len = (size_t)(end - line);
		*end = '\0';
		buf_consume(in, len + 1);
		if (strlen(line) != len) {
			lose_connection(d, "a NUL is no part of the protocol");
			return;
		}
		if (!obey_line(d, line))
			return;
	}
	if (buf_len(in) > LINE_MAX_BYTES)
		lose_connection(d, "a line without end");
	else if (d->unasked)
		ask_held(d);
}

static void send_hello(struct dovecot *d)
{
	uint32_t own; /* must be no other client's, in whatever process or container */
	if (RAND_bytes((unsigned char *)&own, sizeof own) != 1)
		own = (uint32_t)gettid();
	buf_printf(stream_out(d->stream), "VERSION\t1\t1\nCPID\t%u\n", own >> 1 | 1);
	stream_flush(d->stream);
}

static void on_event(void *owner, enum stream_event event)
{
	struct dovecot *d = owner;
	switch (event) {
	case STREAM_CONNECTED:
		send_hello(d);
		break;
	case STREAM_DATA:
		read_lines(d);
		break;
	case STREAM_EOF:
		lose_connection(d, "it has closed the connection");
		break;
	case STREAM_ERROR:
		lose_connection(d, stream_error(d->stream));
		break;
	default:
		break;
	}
}

/* A socket that is connected at once, or not at all. */
static int connect_unix(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	assert(strlen(path) < sizeof a.sun_path);
	strcpy(a.sun_path, path);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof a) != 0) {
		file_close(fd);
		return -1;
	}
	return fd;
}

static void connect_now(struct dovecot *d)
{
	union address to;
	d->state = DOVECOT_CONNECTING;
	d->versioned = d->unasked = false;
	d->announced = 0;
	loop_timer_in(d->loop, &d->timer, d->timeout_ms);
	if (d->where[0] == '/') {
		int fd = connect_unix(d->where);
		if (fd < 0) {
			lose_connection(d, strerror(errno));
			return;
		}
		d->stream = stream_accepted(d->loop, fd, on_event, d);
		send_hello(d);
	} else {
		address_parse_with_port(d->where + strlen("inet:"), &to);
		d->stream = stream_connect(d->loop, &to, NULL, on_event, d);
	}
}

static void on_timer(void *owner)
{
	struct dovecot *d = owner;
	if (d->state == DOVECOT_RESTING)
		connect_now(d);
	else
		lose_connection(d, "it does not answer");
}

struct dovecot *dovecot_new(struct loop *loop)
{
	struct dovecot *d = mem_zalloc(sizeof *d);
	d->loop = loop;
	d->where = mem_strdup("");
	timer_init(&d->timer, on_timer, d);
	return d;
}

void dovecot_free(struct dovecot **dp)
{
	struct dovecot *d = *dp;
	if (!d)
		return;
	close_connection(d);
	free(d->where);
	free(d);
	*dp = NULL;
}

void dovecot_use(struct dovecot *d, const char *where, int64_t timeout_ms)
{
	d->timeout_ms = timeout_ms;
	if (strcmp(d->where, where) == 0)
		return;
	close_connection(d);
	free(d->where);
	d->where = mem_strdup(where);
	d->state = DOVECOT_OFF;
	d->told = false;
	d->rest_ms = REST_FIRST_MS;
	if (*where)
		begin_rest(d, 0); /* from the loop's own thread */
}

bool dovecot_can(const struct dovecot *d, enum mechanism m)
{
	return d->told ? (d->can & MECHANISM_BIT(m)) != 0 : !mechanism_row(m)->plus;
}

static void put_address(struct buf *to, char side, const union address *a)
{
	char text[64];
	buf_printf(to, "\t%cip=%s\t%cport=%d", side, address_text(a, text), side, address_port(a));
}

/* "no-penalty": failures are counted, and delayed, here. "nologin": nobody asks about this user again. */
static char *first_line(uint32_t id, const struct dovecot_question *q)
{
	struct buf line = {0};
	buf_reserve(&line, LINE_MAX_BYTES);
	buf_printf(&line, "AUTH\t%u\t%s\tservice=smtp\tnologin\tno-penalty%s", id,
		   mechanism_row(q->mechanism)->name, q->secured ? "\tsecured" : "");
	put_address(&line, 'l', q->local);
	put_address(&line, 'r', q->client);
	if (q->initial) {
		buf_puts(&line, "\tresp=");
		buf_append(&line, q->initial, strlen(q->initial));
	}
	buf_puts(&line, "\n");
	char *text = mem_strdup(buf_cstr(&line));
	buf_wipe(&line);
	return text;
}

static bool takes_more(const struct dovecot *d)
{
	return d->state == DOVECOT_CONNECTING ||
	       (d->state == DOVECOT_READY && buf_len(stream_out(d->stream)) < OUT_MAX);
}

uint32_t dovecot_ask(struct dovecot *d, const struct dovecot_question *q)
{
	if (!takes_more(d))
		return 0;
	struct exchange *x = mem_zalloc(sizeof *x);
	x->id = ++d->next_id ? d->next_id : ++d->next_id;
	x->cookie = q->cookie;
	x->held = first_line(x->id, q);
	HASH_ADD(hh, d->exchanges, id, sizeof x->id, x);
	if (d->state == DOVECOT_READY) {
		send_line(d, x->held);
		mem_free_secret(x->held);
		x->held = NULL;
	}
	return x->id;
}

bool dovecot_go_on(struct dovecot *d, uint32_t id, uint64_t cookie, const char *response)
{
	struct exchange *x;
	HASH_FIND(hh, d->exchanges, &id, sizeof id, x);
	if (!x || d->state != DOVECOT_READY || !takes_more(d))
		return false;
	assert(!x->cookie);
	x->cookie = cookie;
	struct buf *out = stream_out(d->stream);
	buf_printf(out, "CONT\t%u\t", id);
	buf_append(out, response, strlen(response));
	send_line(d, "\n");
	return true;
}

void dovecot_cancel(struct dovecot *d, uint32_t id)
{
	struct exchange *x;
	HASH_FIND(hh, d->exchanges, &id, sizeof id, x);
	if (!x)
		return;
	if (!x->held && takes_more(d)) {
		buf_printf(stream_out(d->stream), "CANCEL\t%u\n", id);
		stream_flush(d->stream);
	}
	drop_exchange(d, x);
}
