/* world.h - what surrounds the scheduler in its tests: spool, dns, workers and the clock.
 *
 * Everything that qmgr says is kept here until a test looks at it; what its neighbours would
 * answer, the test posts. There are no threads: settle() runs the loop until it has nothing to do,
 * and the clock stands still until pass_time().
 */
#ifndef TESTS_UNIT_QMGR_WORLD_H
#define TESTS_UNIT_QMGR_WORLD_H

#include "tests/unit/qmgr/unit.h"

#include "base/clock.h"
#include "base/delivery.h"
#include "base/log.h"
#include "base/mem.h"
#include "qmgr/dest/site.h"
#include "qmgr/qmgr.h"
#include "qmgr/sched/pool.h"
#include "qmgr/qmgr_thread.h"
#include "spool/spool.h"

#include <arpa/inet.h>
#include <ev.h>
#include <string.h>

enum { BOX_SIZE = 20000, WORKERS = 3 };

/* Notes that came, oldest first. */
struct box {
	struct note *note[BOX_SIZE];
	int n;
};

static struct qmgr *q;
static struct box told, questions, given, opened, ending; /* by spool, dns, worker */
static int64_t clock_ms;

/* Names that were answered are answered so again, by settle(), where a test says that they stay as they are. */
enum { NAMES_MAX = 100 };
static bool names_stay;
static struct known_name {
	char name[60], hosts[200];
} known_names[NAMES_MAX];
static int nknown_names;

static const int64_t started_ms = INT64_C(1700000000000);

int64_t clock_steady_ms(void)
{
	return clock_ms;
}

int64_t clock_steady_us(void)
{
	return clock_ms * 1000;
}

int64_t clock_wall_ms(void)
{
	return started_ms + clock_ms;
}

int64_t clock_wall_us(void)
{
	return clock_wall_ms() * 1000;
}

int64_t clock_up_ms(void)
{
	return clock_ms;
}

static inline void put(struct box *b, struct note *note)
{
	assert_true(b->n < BOX_SIZE);
	b->note[b->n++] = note;
}

static inline void *take(struct box *b, int i)
{
	assert_true(i >= 0 && i < b->n);
	struct note *note = b->note[i];
	memmove(&b->note[i], &b->note[i + 1], (size_t)(b->n - i - 1) * sizeof b->note[0]);
	b->n--;
	return note;
}

static inline int find(const struct box *b, const void *note)
{
	for (int i = 0; i < b->n; i++)
		if (b->note[i] == note)
			return i;
	return -1;
}

static inline void to_spool(void *context, struct note *note)
{
	put(context, note);
}

static inline void to_dns(void *context, struct note *note)
{
	(void)context;
	put(&questions, note);
}

static inline void to_worker(void *context, int worker, struct note *note)
{
	(void)context;
	assert_in_range(worker, 0, WORKERS - 1);
	if (note->type == CONNECTION_OPEN)
		put(&opened, note);
	else
		put(note->type == CONNECTION_CLOSE ? &ending : &given, note);
}

static inline bool answer_as_before(void);

static inline void settle(void)
{
	do
		for (int i = 0; i < 3; i++)
			ev_run(qmgr_loop(q)->ev, EVRUN_NOWAIT);
	while (answer_as_before());
	pool_check(&q->sched);
	destdb_check(&q->db);
}

static inline void pass_time(int64_t ms)
{
	clock_ms += ms;
	settle();
}

/* A host that refuses all is asked again after about so long: learnt_pace.h. */
static inline void pass_about(int64_t ms)
{
	pass_time(ms + ms / 8);
}

static inline void post(struct note *note)
{
	loop_post(qmgr_loop(q), note);
}

static inline void forget(void *told_note)
{
	struct note *note = told_note;
	if (note->type == SPOOL_DELIVERED) {
		struct spool_delivered *d = told_note;
		for (uint32_t i = 0; i < d->n; i++)
			verdict_unref(d->of[i].verdict);
	} else if (note->type == SPOOL_RELEASE) {
		envelope_free(&((struct spool_release *)told_note)->envelope);
	} else if (note->type == SPOOL_STORE) {
		struct spool_store *s = told_note;
		envelope_free(&s->envelope);
		content_unref(s->content);
	}
	free(note);
}

/* The oldest thing that the spool was told, which must be this. */
static inline void *next_told(enum spool_note type)
{
	assert_true(told.n > 0);
	assert_int_equal(told.note[0]->type, type);
	return take(&told, 0);
}

static inline void begin(const char *text)
{
	clock_ms = 1000000;
	log_set_level(LOG_LEVEL_ERROR);
	struct conf *conf = conf_of(text);
	q = qmgr_new(conf);
	conf_unref(conf);
	struct qmgr_edges edges = {.to_spool = to_spool,
				   .to_dns = to_dns,
				   .to_worker = to_worker,
				   .context = &told,
				   .workers = WORKERS};
	qmgr_wire(q, &edges);
	forget(next_told(SPOOL_CREDIT));
}

/* The scheduler goes first: whatever is under way, it must come apart. */
static inline int finish(void **state)
{
	(void)state;
	names_stay = false;
	nknown_names = 0;
	qmgr_free(&q);
	while (told.n > 0)
		forget(take(&told, 0));
	while (questions.n > 0) {
		struct resolve *r = take(&questions, 0);
		resolve_free(&r);
	}
	while (given.n > 0) {
		struct delivery *d = take(&given, 0);
		delivery_free(&d);
	}
	while (ending.n > 0)
		free(take(&ending, 0));
	while (opened.n > 0) {
		struct connection_open *o = take(&opened, 0);
		connection_open_free(&o);
	}
	return 0;
}

static inline void reload(const char *text)
{
	struct conf *conf = conf_of(text);
	qmgr_reload(q, conf);
	conf_unref(conf);
	settle();
}

static inline struct envelope *mail(uint64_t id, const char *sender, const char *to)
{
	struct envelope *e = envelope_new();
	e->id = id;
	e->arrived_ms = clock_wall_ms();
	e->sender = mem_strdup(sender);
	if (to)
		envelope_add(e, to);
	return e;
}

/* Not looked at yet. */
static inline void post_arrival(struct envelope *e)
{
	static const char text[] = "Subject: x\r\n\r\nbody\r\n";
	struct spool_arrival *a = mem_zalloc(sizeof *a);
	a->note.type = SPOOL_ARRIVAL;
	a->envelope = e;
	a->content = content_in_memory(mem_strdup(text), sizeof text - 1);
	post(&a->note);
}

static inline void arrive(struct envelope *e)
{
	post_arrival(e);
	settle();
}

static inline void send_mail(uint64_t id, const char *to)
{
	arrive(mail(id, "sender@here.test", to));
}

static inline void send_cancel(uint64_t id, bool keep)
{
	struct spool_cancel *c = mem_zalloc(sizeof *c);
	c->note.type = SPOOL_CANCEL;
	c->id = id;
	c->keep = keep;
	post(&c->note);
	settle();
}

static inline void cancel(uint64_t id)
{
	send_cancel(id, false);
}

/* The operator wants it back in the queue, on hold or to be tried anew. */
static inline void want_back(uint64_t id)
{
	send_cancel(id, true);
}

static inline struct resolve *take_question(const char *name)
{
	for (int i = 0; i < questions.n; i++)
		if (strcmp(((struct resolve *)questions.note[i])->name, name) == 0)
			return take(&questions, i);
	print_error("dns was not asked for %s\n", name);
	_fail(__FILE__, __LINE__);
	return NULL;
}

static inline struct known_name *find_known_name(const char *name)
{
	for (int i = 0; i < nknown_names; i++)
		if (strcmp(known_names[i].name, name) == 0)
			return &known_names[i];
	return NULL;
}

static inline void keep_name(const char *name, const char *hosts)
{
	struct known_name *known = find_known_name(name);
	if (!known) {
		assert_true(nknown_names < NAMES_MAX);
		known = &known_names[nknown_names++];
	}
	snprintf(known->name, sizeof known->name, "%s", name);
	snprintf(known->hosts, sizeof known->hosts, "%s", hosts);
}

/* hosts: "10 mx1.test 192.0.2.1, 20 mx2.test 2001:db8::2" */
static inline void post_answer(const char *name, const char *hosts)
{
	struct resolve *r = take_question(name);
	char *text = mem_strdup(hosts), *rest = text;
	for (char *one; (one = strsep(&rest, ",")) != NULL;) {
		char host[100], address[64];
		int preference;
		assert_int_equal(sscanf(one, "%d %99s %63s", &preference, host, address), 3);
		r->host = mem_realloc(r->host, (size_t)(r->nhost + 1) * sizeof *r->host);
		struct resolve_host *h = &r->host[r->nhost++];
		*h = (struct resolve_host){.name = mem_strdup(host),
					   .preference = (uint16_t)preference,
					   .naddress = 1};
		const bool v6 = strchr(address, ':');
		h->address[0].sa.sa_family = v6 ? AF_INET6 : AF_INET;
		assert_int_equal(inet_pton(v6 ? AF_INET6 : AF_INET, address,
					   v6 ? (void *)&h->address[0].in6.sin6_addr
					      : (void *)&h->address[0].in.sin_addr),
				 1);
	}
	free(text);
	r->note.type = RESOLVE_ANSWER;
	post(&r->note);
}

static inline void answer(const char *name, const char *hosts)
{
	if (names_stay)
		keep_name(name, hosts);
	post_answer(name, hosts);
	settle();
}

static inline bool answer_as_before(void)
{
	for (int i = 0; names_stay && i < questions.n; i++) {
		const struct known_name *known =
			find_known_name(((struct resolve *)questions.note[i])->name);
		if (!known)
			continue;
		post_answer(known->name, known->hosts);
		return true;
	}
	return false;
}

/* Each name has a host of its own, all at one address. */
static inline void answer_each(void)
{
	while (questions.n > 0) {
		char name[40], host[60];
		snprintf(name, sizeof name, "%s", ((struct resolve *)questions.note[0])->name);
		snprintf(host, sizeof host, "10 mx-%s 192.0.2.1", name);
		answer(name, host);
	}
}

static inline void no_answer(const char *name, enum verdict_class class, const char *dsn)
{
	struct resolve *r = take_question(name);
	r->failure = verdict_new(class, 0, dsn, NULL, "not found");
	r->note.type = RESOLVE_ANSWER;
	post(&r->note);
	settle();
}

static inline struct connection_open *open_at(int i)
{
	assert_true(i < opened.n);
	return (struct connection_open *)opened.note[i];
}

static inline int opened_to(const char *host)
{
	int n = 0;
	for (int i = 0; i < opened.n; i++)
		n += strcmp(open_at(i)->host, host) == 0;
	return n;
}

static inline struct connection_open *open_to(const char *host)
{
	for (int i = 0; i < opened.n; i++)
		if (strcmp(open_at(i)->host, host) == 0)
			return open_at(i);
	print_error("no connection to %s\n", host);
	_fail(__FILE__, __LINE__);
	return NULL;
}

/* Likewise. */
static inline void post_ready(struct connection_open *o, int depth)
{
	struct connection_ready *r = mem_zalloc(sizeof *r);
	r->note.type = CONNECTION_READY;
	r->connection = o->connection;
	r->owner = o->owner;
	r->depth = depth;
	post(&r->note);
}

static inline void ready(struct connection_open *o, int depth)
{
	post_ready(o, depth);
	settle();
}

/* Whichever has not been. */
static inline void ready_all(void)
{
	for (int i = 0; i < opened.n; i++)
		if (!open_at(i)->was_ready) {
			open_at(i)->was_ready = true;
			ready(open_at(i), 1);
		}
}

static inline bool was_told_to_end(const struct connection_open *o)
{
	for (int i = 0; i < ending.n; i++)
		if (((struct connection_close *)ending.note[i])->connection == o->connection)
			return true;
	return false;
}

static inline void heard_of(struct connection_open *o, enum connection_slowness how)
{
	struct connection_slow *s = mem_zalloc(sizeof *s);
	s->note.type = CONNECTION_SLOW;
	s->owner = o->owner;
	s->how = how;
	post(&s->note);
	settle();
}

/* TCP has had no answer for connection_attempt_delay, or late: for backup_attempt_delay. */
static inline void unanswered(struct connection_open *o, bool late)
{
	heard_of(o, late ? CONNECTION_LATE : CONNECTION_BESIDE);
}

/* Nothing at all for CONNECTION_SILENT_MS. */
static inline void silent(struct connection_open *o)
{
	heard_of(o, CONNECTION_SILENT);
}

static inline bool was_told_to_leave(const struct connection_open *o)
{
	for (int i = 0; i < ending.n; i++) {
		const struct connection_close *c = (struct connection_close *)ending.note[i];
		if (c->connection == o->connection && c->leave)
			return true;
	}
	return false;
}

/* The last word on it, not yet looked at. */
static inline void post_closed(struct connection_open *o, const char *why)
{
	take(&opened, find(&opened, o));
	o->note.type = CONNECTION_CLOSED;
	if (why)
		o->why = verdict_new(VERDICT_DEFERRED, 421, "4.4.2", o->host, why);
	post(&o->note);
}

static inline void close_orderly(struct connection_open *o)
{
	post_closed(o, NULL);
	settle();
}

static inline void lose(struct connection_open *o, const char *why)
{
	post_closed(o, why);
	settle();
}

static inline struct delivery *given_at(int i)
{
	assert_true(i < given.n);
	return (struct delivery *)given.note[i];
}

static inline struct delivery *delivery_of_mail(uint64_t id)
{
	for (int i = 0; i < given.n; i++)
		if (given_at(i)->id == id)
			return given_at(i);
	print_error("message %d was not given\n", (int)id);
	_fail(__FILE__, __LINE__);
	return NULL;
}

static inline void set_verdict(struct delivery *d, uint32_t i, enum verdict_class class)
{
	static const int code[] = {[VERDICT_SENT] = 250,
				   [VERDICT_DEFERRED] = 450,
				   [VERDICT_FAILED] = 550,
				   [VERDICT_IN_DOUBT] = 0};
	d->rcpt[i].verdict = verdict_new(class, code[class], NULL, "mx.test[192.0.2.1]:25", "said");
}

static inline void post_back(struct delivery *d)
{
	take(&given, find(&given, d));
	d->note.type = DELIVERY_BACK;
	post(&d->note);
}

static inline void back(struct delivery *d)
{
	post_back(d);
	settle();
}

static inline void done(struct delivery *d, enum verdict_class class)
{
	for (uint32_t i = 0; i < d->nrcpt; i++)
		set_verdict(d, i, class);
	back(d);
}

static inline void put_back(struct delivery *d)
{
	d->returned = true;
	back(d);
}

/* What the spool says to a report. */
static inline void stored(struct spool_store *s, bool well)
{
	envelope_free(&s->envelope);
	content_unref(s->content);
	s->content = NULL;
	s->stored = well;
	s->note.type = SPOOL_STORED;
	post(&s->note);
	settle();
}

static inline struct site *site_named(const char *name)
{
	for (struct site *s = q->db.sites; s; s = s->hh.next)
		if (strcmp(s->name, name) == 0)
			return s;
	print_error("no site %s\n", name);
	_fail(__FILE__, __LINE__);
	return NULL;
}

/* Nothing is left to do for this message. */
static inline void is_released(uint64_t id)
{
	struct spool_release *r = next_told(SPOOL_RELEASE);
	assert_true(r->id == id);
	assert_null(r->envelope);
	forget(r);
}

/* It is kept for another attempt; the envelope is the caller's. */
static inline struct envelope *is_kept(uint64_t id)
{
	struct spool_release *r = next_told(SPOOL_RELEASE);
	assert_true(r->id == id);
	struct envelope *e = r->envelope;
	assert_non_null(e);
	r->envelope = NULL;
	forget(r);
	return e;
}

/* All of it was delivered, and its release, which comes next, says so. */
static inline bool is_delivered_by_release(uint64_t id)
{
	assert_true(told.n > 0);
	const struct spool_release *r = (struct spool_release *)told.note[0];
	return r->note.type == SPOOL_RELEASE && r->delivers && r->id == id;
}

static inline void is_delivered(uint64_t id, uint32_t n, enum verdict_class class)
{
	if (class == VERDICT_SENT && is_delivered_by_release(id))
		return;
	struct spool_delivered *d = next_told(SPOOL_DELIVERED);
	assert_true(d->id == id);
	assert_int_equal(d->n, n);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(d->of[i].verdict->class, class);
	forget(d);
}

/* It goes back to the queue, to wait there until its site takes mail again; the envelope is the
 * caller's. */
static inline struct envelope *is_parked(uint64_t id)
{
	assert_true(told.n > 0 && told.note[0]->type == SPOOL_RELEASE);
	struct spool_release *r = (struct spool_release *)told.note[0];
	assert_true(r->parked);
	assert_in_range(r->site, 1, SPOOL_SITE_MAX);
	return is_kept(id);
}

/* A site takes mail again: what the spool is asked for, and its answer. */
static inline struct spool_unpark *is_asked_back(void)
{
	return next_told(SPOOL_UNPARK);
}

static inline void asked_back(struct spool_unpark *note, uint32_t parked, uint32_t waiting)
{
	note->parked = parked;
	note->waiting = waiting;
	post(&note->note);
	settle();
}

static const char one_host[] = "10 mx.test 192.0.2.1";

/* So many messages to a.test, from 1, with their next hop known. */
static inline void send_many(int n)
{
	for (int i = 1; i <= n; i++)
		send_mail((uint64_t)i, "x@a.test");
	answer("a.test", one_host);
}

#endif
