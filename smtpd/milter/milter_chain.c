/* SPDX-License-Identifier: ISC */
#include "smtpd/milter/milter_chain_impl.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { CHANGES_MAX = 10000 };

static bool filter_event(void *owner, enum milter_link_event, const struct milter_answer *);

/* The next filter begins with the event. */
static void begin_filter(struct milter_chain *c)
{
	assert(c->at <= c->n);
	if (c->at == c->n)
		return;
	struct filter *f = &c->filter[c->at];
	f->done = false;
	if (f->link)
		milter_link_patience(f->link);
	if (c->event == MILTER_END_OF_BODY)
		milter_content_begin(&f->content, c->draft, *c->hidden);
}

/* True: the verdict is there. */
static bool run_filters(struct milter_chain *c)
{
	while (c->at < c->n) {
		switch (milter_filter_advance(&c->filter[c->at], filter_event)) {
		case STEP_WAITS:
			return false;
		case STEP_STOPS:
			c->at = c->n;
			return true;
		default:
			c->at++;
			begin_filter(c);
		}
	}
	return true;
}

/* After this the chain may be gone. */
static void go_on(struct milter_chain *c)
{
	if (run_filters(c))
		c->edges->done(c->owner);
}

static void stop_chain(struct milter_chain *c)
{
	c->at = c->n;
	c->edges->done(c->owner);
}

/* Either the verdict, or on to the next filter. */
static void conclude_filter(struct milter_chain *c, enum step step)
{
	assert(c->at < c->n);
	if (step == STEP_STOPS) {
		stop_chain(c);
		return;
	}
	c->at++;
	begin_filter(c);
	go_on(c);
}

static bool is_at_work(const struct filter *f)
{
	const struct milter_chain *c = f->chain;
	return c->at < c->n && f == &c->filter[c->at] && f->state == FILTER_WORKS && !c->settling;
}

static void take_answer(struct filter *f, const struct milter_answer *a)
{
	struct milter_chain *c = f->chain;
	enum milter_event event = f->link->engine.asked;
	enum step step;
	assert(is_at_work(f));
	milter_filter_told(f, event);
	if (milter_filter_obey(f, event, a, &step))
		go_on(c);
	else if (step != STEP_WAITS)
		conclude_filter(c, step);
}

static bool take_change(struct filter *f, const struct milter_answer *a)
{
	struct milter_chain *c = f->chain;
	assert(is_at_work(f));
	const char *wrong =
		++f->changes > CHANGES_MAX ? "it changes too much" : c->edges->change(c->owner, a);
	if (wrong)
		conclude_filter(c, milter_filter_failed(f, wrong));
	return !wrong;
}

/* An idle connection that served others before may have ended just now: another then, as long as nothing
 * depends on it. */
static bool may_begin_again(const struct filter *f)
{
	const struct milter_chain *c = f->chain;
	bool message = (f->told & MILTER_BIT(MAIL)) != 0;
	return f->link->reused && !message &&
	       (milter_is_of_session(c->event) || c->event == MILTER_MAIL);
}

static void lose_link(struct filter *f)
{
	struct milter_chain *c = f->chain;
	char *why = mem_strdup(f->link->why);
	if (is_at_work(f) && may_begin_again(f)) {
		milter_link_drop(&f->link);
		f->told = 0;
		free(why);
		go_on(c);
		return;
	}
	if (is_at_work(f)) {
		conclude_filter(c, milter_filter_failed(f, why));
	} else {
		bool message = f->told & MILTER_BIT(MAIL);
		milter_link_drop(&f->link);
		f->told = 0;
		if (message) {
			milter_health_broke(f->conf, MILTER_MESSAGE_FAULT, why);
			milter_filter_write_off(f, why);
		}
	}
	free(why);
}

static bool filter_event(void *owner, enum milter_link_event event, const struct milter_answer *a)
{
	struct filter *f = owner;
	struct milter_chain *c = f->chain;
	switch (event) {
	case MILTER_LINK_READY:
	case MILTER_LINK_DRAINED:
		if (is_at_work(f) && f->link->engine.state == MILTER_IDLE)
			go_on(c);
		return true;
	case MILTER_LINK_CHANGE:
		return take_change(f, a);
	case MILTER_LINK_ANSWER:
		take_answer(f, a);
		return true;
	default:
		lose_link(f);
		return true;
	}
}

struct milter_chain *milter_chain_new(struct milters *m, struct conf *conf,
				      const struct milter_edges *edges, void *owner)
{
	struct milter_chain *c = mem_zalloc(sizeof *c);
	c->milters = m;
	c->conf = conf_ref(conf);
	c->edges = edges;
	c->owner = owner;
	return c;
}

void milter_chain_add(struct milter_chain *c, const struct conf_milter *conf)
{
	assert(c->n < CONF_MILTERS_MAX && c->at == c->n);
	c->filter[c->n++] = (struct filter){.chain = c, .conf = conf};
	c->at = c->n;
}

void milter_chain_insist(struct milter_chain *c)
{
	c->insists = true;
}

static void filter_fini(struct filter *f)
{
	milter_content_fini(&f->content);
	milter_link_put(&f->link);
	free(f->refusal);
}

void milter_chain_free(struct milter_chain **cp)
{
	struct milter_chain *c = mem_take(cp);
	if (!c)
		return;
	milter_chain_end(c);
	for (int i = 0; i < c->n; i++)
		filter_fini(&c->filter[i]);
	buf_fini(&c->connect);
	buf_fini(&c->helo);
	buf_fini(&c->mail);
	buf_fini(&c->data);
	buf_fini(&c->reply);
	conf_unref(c->conf);
	free(c);
}

const struct milter_verdict *milter_chain_verdict(const struct milter_chain *c)
{
	return &c->verdict;
}

bool milter_chain_holds(const struct milter_chain *c)
{
	return c->holds;
}

static bool begin_event(struct milter_chain *c, enum milter_event event)
{
	assert(c->at == c->n && !c->settling);
	c->event = event;
	c->verdict = (struct milter_verdict){.outcome = MILTER_PASS};
	if (c->discards) {
		c->verdict =
			(struct milter_verdict){.outcome = MILTER_DISCARD, .filter = c->discards};
		return true;
	}
	c->at = 0;
	begin_filter(c);
	return run_filters(c);
}

static void forget_event(struct milter_chain *c, enum milter_event event)
{
	for (int i = 0; i < c->n; i++)
		c->filter[i].told &= ~(1U << event);
}

bool milter_chain_connect(struct milter_chain *c, const char *name, const union address *client)
{
	char address[64];
	int family = client->sa.sa_family;
	bool known = (family == AF_INET && client->in.sin_addr.s_addr != INADDR_ANY) ||
		     family == AF_INET6;
	buf_clear(&c->connect);
	milter_put_text(&c->connect, name);
	buf_append(&c->connect, !known ? "U" : family == AF_INET ? "4" : "6", 1);
	if (known) {
		milter_put_number(&c->connect, (uint32_t)address_port(client), 2);
		milter_put_text(&c->connect, address_text(client, address));
	}
	return begin_event(c, MILTER_CONNECT);
}

bool milter_chain_helo(struct milter_chain *c, const char *name)
{
	buf_clear(&c->helo);
	milter_put_text(&c->helo, name);
	forget_event(c, MILTER_HELO);
	return begin_event(c, MILTER_HELO);
}

/* An argument each: the path, and what stands between blanks behind it. */
static void put_arguments(struct buf *to, const char *path, const char *parameters)
{
	buf_clear(to);
	milter_put_text(to, path);
	for (const char *at = parameters; *(at += strspn(at, " \t"));) {
		size_t len = strcspn(at, " \t");
		buf_append(to, at, len);
		buf_append(to, "", 1);
		at += len;
	}
}

bool milter_chain_mail(struct milter_chain *c, const char *path, const char *parameters)
{
	put_arguments(&c->mail, path, parameters);
	return begin_event(c, MILTER_MAIL);
}

bool milter_chain_rcpt(struct milter_chain *c, const char *path, const char *parameters)
{
	put_arguments(&c->data, path, parameters);
	return begin_event(c, MILTER_RCPT);
}

bool milter_chain_data(struct milter_chain *c)
{
	buf_clear(&c->data);
	return begin_event(c, MILTER_DATA);
}

bool milter_chain_unknown(struct milter_chain *c, const char *line)
{
	buf_clear(&c->data);
	milter_put_text(&c->data, line);
	return begin_event(c, MILTER_UNKNOWN);
}

bool milter_chain_content(struct milter_chain *c, const struct draft *d, const int *hidden)
{
	c->draft = d;
	c->hidden = hidden;
	return begin_event(c, MILTER_END_OF_BODY);
}

bool milter_chain_go_on(struct milter_chain *c)
{
	assert(c->settling);
	c->settling = false;
	c->at++;
	begin_filter(c);
	return run_filters(c);
}

/* The filter owes an answer, to what nobody asks any more; or has to be told that the message is none. */
static void end_message(struct filter *f)
{
	if (f->link && f->link->ready && f->link->engine.state != MILTER_IDLE) {
		milter_link_drop(&f->link);
		f->told = 0;
	} else if (f->told & MILTER_BIT(MAIL)) {
		milter_link_abort(f->link);
		f->told &= ~(MILTER_BIT(MAIL) | MILTER_BIT(DATA));
	}
}

void milter_chain_end(struct milter_chain *c)
{
	for (int i = 0; i < c->n; i++) {
		struct filter *f = &c->filter[i];
		milter_filter_forget(f);
		end_message(f);
		if (f->state == FILTER_ACCEPTS_MESSAGE || f->state == FILTER_FAILED)
			milter_filter_move(f, FILTER_WORKS);
	}
	c->at = c->n;
	c->settling = c->holds = false;
	c->discards = NULL;
	buf_clear(&c->data);
}
