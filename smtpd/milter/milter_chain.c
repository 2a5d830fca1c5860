/* SPDX-License-Identifier: ISC */
#include "smtpd/milter/milter_chain.h"

#include "base/address.h"
#include "base/mem.h"
#include "smtpd/milter/milter_content.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char rejected[] = "550 5.7.1 Command rejected\r\n";
static const char tempfailed[] = "451 4.7.1 Service unavailable - try again later\r\n";
static const char shut_down[] = "421 4.7.0 Service not available - closing connection\r\n";

/* What becomes of further events. */
enum filter_state {
	FILTER_WORKS,
	FILTER_ACCEPTS_SESSION,
	FILTER_REFUSES_SESSION, /* by refusal */
	FILTER_ACCEPTS_MESSAGE,
	FILTER_FAILED, /* for this message: default_action */
};

enum { CHANGES_MAX = 10000 };

struct filter {
	struct milter_chain *chain;
	const struct conf_milter *conf;
	struct milter_link *link; /* NULL: none */
	enum filter_state state;
	unsigned told; /* bits of enum milter_event: it knows these; MAIL: a message is under way */
	bool done;     /* with the event at work */
	int changes;
	char *refusal; /* REFUSES_SESSION */
	struct milter_content content;
};

struct milter_chain {
	struct milters *milters;
	struct conf *conf;
	const struct milter_edges *edges;
	void *owner;
	const struct draft *draft;
	const int *hidden;
	struct buf connect, helo, mail; /* what to tell whoever missed it */
	struct buf data;		/* of the event at work */
	enum milter_event event;	/* at work; END_OF_BODY stands for all content */
	int n, at;			/* at: whom is asked; n: nobody */
	bool settling;			/* changed() has not come to its end */
	bool holds;			/* the message */
	const char *discards;		/* which filter wants the message dropped; or NULL */
	struct milter_verdict verdict;
	struct buf reply;
	struct filter filter[CONF_MILTERS_MAX];
};

#define BIT(event) (1U << MILTER_##event)

enum step { STEP_WAITS, STEP_NEXT, STEP_STOPS };

static bool run(struct milter_chain *);

static bool is_session_event(enum milter_event e)
{
	return e == MILTER_CONNECT || e == MILTER_HELO || e == MILTER_UNKNOWN;
}

static bool is_legal(enum filter_state from, enum filter_state to)
{
	bool of_session = from == FILTER_ACCEPTS_SESSION || from == FILTER_REFUSES_SESSION;
	return from == to || from == FILTER_WORKS || (to == FILTER_WORKS && !of_session);
}

static void filter_move(struct filter *f, enum filter_state to)
{
	assert(is_legal(f->state, to));
	f->state = to;
}

static enum step refuse(struct filter *f, const char *reply)
{
	struct milter_chain *c = f->chain;
	buf_clear(&c->reply);
	buf_puts(&c->reply, reply);
	c->verdict = (struct milter_verdict){
		.outcome = MILTER_REFUSE, .reply = buf_cstr(&c->reply), .filter = f->conf->title};
	return STEP_STOPS;
}

/* Of one that failed. */
static enum step default_action(struct filter *f)
{
	switch (f->conf->default_action) {
	case MILTER_DEFAULT_ACCEPT:
		return STEP_NEXT;
	case MILTER_DEFAULT_QUARANTINE:
		f->chain->holds = true;
		return STEP_NEXT;
	case MILTER_DEFAULT_REJECT:
		return refuse(f, rejected);
	default:
		return refuse(f, tempfailed);
	}
}

static const char *action_text(const struct filter *f)
{
	static const char *const texts[] = {[MILTER_DEFAULT_TEMPFAIL] = "tempfail",
					    [MILTER_DEFAULT_ACCEPT] = "accept",
					    [MILTER_DEFAULT_REJECT] = "reject",
					    [MILTER_DEFAULT_QUARANTINE] = "quarantine"};
	return texts[f->conf->default_action];
}

static void forget_message(struct filter *f)
{
	if (f->changes > 0)
		f->chain->edges->unchanged(f->chain->owner);
	f->changes = 0;
	milter_content_fini(&f->content);
}

/* At CONNECT and HELO nothing is lost yet: it is tried again when there is mail. In a message it must not
 * be asked about what it has not seen. */
static enum step failed(struct filter *f, const char *why)
{
	struct milter_chain *c = f->chain;
	char *reason = mem_strdup(why);
	bool message = (f->told & BIT(MAIL)) != 0;
	milter_link_broke(f->conf, reason);
	milter_link_drop(&f->link);
	forget_message(f);
	f->told = 0;
	enum step next = STEP_NEXT;
	if (message || !is_session_event(c->event)) {
		filter_move(f, FILTER_FAILED);
		c->edges->tell(c->owner, f->conf->title, action_text(f), reason);
	}
	if (!is_session_event(c->event))
		next = default_action(f);
	free(reason);
	return next;
}

/* What it is to be told next for the event at work; MILTER_EVENT_COUNT: nothing. */
static enum milter_event due(const struct filter *f)
{
	const struct milter_chain *c = f->chain;
	if (f->done)
		return MILTER_EVENT_COUNT;
	if (!(f->told & BIT(CONNECT)))
		return MILTER_CONNECT;
	if (c->event == MILTER_CONNECT)
		return MILTER_EVENT_COUNT;
	if (!(f->told & BIT(HELO)) && buf_len(&c->helo) > 0)
		return MILTER_HELO;
	if (c->event == MILTER_HELO)
		return MILTER_EVENT_COUNT;
	if (c->event == MILTER_UNKNOWN)
		return MILTER_UNKNOWN;
	if (!(f->told & BIT(MAIL)))
		return MILTER_MAIL;
	if (c->event == MILTER_MAIL)
		return MILTER_EVENT_COUNT;
	/* Content in chunks has had no DATA. */
	if (c->event == MILTER_END_OF_BODY && !(f->told & BIT(DATA)))
		return MILTER_DATA;
	return c->event == MILTER_END_OF_BODY ? milter_content_due(&f->content) : c->event;
}

static void told(struct filter *f, enum milter_event event)
{
	if (event == MILTER_DATA)
		f->done = f->chain->event == MILTER_DATA;
	if (event == MILTER_CONNECT || event == MILTER_HELO || event == MILTER_MAIL ||
	    event == MILTER_DATA)
		f->told |= 1U << event;
	else if (f->chain->event == MILTER_END_OF_BODY)
		milter_content_told(&f->content, event);
	else
		f->done = true;
}

static const struct buf *data_of(struct filter *f, enum milter_event event)
{
	struct milter_chain *c = f->chain;
	if (event == MILTER_HEADER || event == MILTER_END_OF_HEADER || event == MILTER_BODY ||
	    event == MILTER_END_OF_BODY)
		return milter_content_data(&f->content, event,
					   f->link->engine.steps & MILTER_LEADING_SPACE);
	return event == MILTER_CONNECT ? &c->connect
	       : event == MILTER_HELO  ? &c->helo
	       : event == MILTER_MAIL  ? &c->mail
				       : &c->data;
}

static enum step broken(struct filter *f, int error)
{
	f->chain->verdict = (struct milter_verdict){
		.outcome = MILTER_FAIL, .filter = f->conf->title, .error = error};
	return STEP_STOPS;
}

/* Tell it one thing. STEP_WAITS: for its answer, or until it has read more. */
static enum step tell(struct filter *f, enum milter_event event)
{
	struct milter_chain *c = f->chain;
	if (milter_link_full(f->link))
		return STEP_WAITS;
	if (!milter_engine_wants(&f->link->engine, event)) {
		if (event == MILTER_BODY || event == MILTER_HEADER)
			milter_content_skip(&f->content, event);
		else
			told(f, event);
		return STEP_NEXT;
	}
	const struct buf *data = data_of(f, event);
	if (!data)
		return broken(f, errno);
	milter_engine_macros(&f->link->engine, event, c->edges->macro, c->owner,
			     milter_link_out(f->link));
	if (milter_link_ask(f->link, event, buf_data(data), buf_len(data)))
		return STEP_WAITS;
	told(f, event);
	return STEP_NEXT;
}

static bool filter_event(void *owner, enum milter_link_event, const struct milter_answer *);

/* What has been said holds, whoever is asked. */
static enum step settled(struct filter *f)
{
	bool unknown = f->chain->event == MILTER_UNKNOWN;
	if (f->state == FILTER_REFUSES_SESSION && !unknown)
		return refuse(f, f->refusal);
	if (f->state == FILTER_FAILED && !is_session_event(f->chain->event))
		return default_action(f);
	return STEP_NEXT;
}

/* Go on with one filter. */
static enum step advance(struct filter *f)
{
	struct milter_chain *c = f->chain;
	if (f->state != FILTER_WORKS)
		return settled(f);
	if (!f->link) {
		f->link = milter_link_get(c->milters, f->conf, filter_event, f);
		if (!f->link)
			return failed(f, "it could not be reached just now");
	}
	if (!f->link->ready)
		return STEP_WAITS;
	enum milter_event event;
	while ((event = due(f)) != MILTER_EVENT_COUNT) {
		enum step step = tell(f, event);
		if (step != STEP_NEXT)
			return step;
	}
	return STEP_NEXT;
}

/* The next filter begins with the event. */
static void begin_filter(struct milter_chain *c)
{
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
static bool run(struct milter_chain *c)
{
	while (c->at < c->n) {
		switch (advance(&c->filter[c->at])) {
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
	if (run(c))
		c->edges->done(c->owner);
}

static void stop(struct milter_chain *c)
{
	c->at = c->n;
	c->edges->done(c->owner);
}

/* Either the verdict, or on to the next filter. */
static void conclude(struct milter_chain *c, enum step step)
{
	if (step == STEP_STOPS) {
		stop(c);
		return;
	}
	c->at++;
	begin_filter(c);
	go_on(c);
}

/* A message has had its last word of this filter. */
static void finish_message(struct filter *f)
{
	f->told &= ~(BIT(MAIL) | BIT(DATA));
	milter_link_works(f->link);
	milter_content_fini(&f->content);
}

static enum step refused(struct filter *f, enum milter_event event, const char *reply)
{
	struct milter_chain *c = f->chain;
	const char *action = reply[0] == '4' ? "tempfail" : "reject";
	c->edges->tell(c->owner, f->conf->title, action, NULL);
	if (event == MILTER_CONNECT) {
		free(f->refusal);
		f->refusal = mem_strdup(reply);
		filter_move(f, FILTER_REFUSES_SESSION);
	} else if (event == MILTER_HELO) {
		f->told &= ~BIT(HELO);
	} else if (event != MILTER_RCPT && event != MILTER_UNKNOWN) {
		forget_message(f);
		finish_message(f);
	}
	return refuse(f, reply);
}

static enum step accepted(struct filter *f, enum milter_event event)
{
	if (event == MILTER_CONNECT || event == MILTER_HELO) {
		filter_move(f, FILTER_ACCEPTS_SESSION);
	} else if (event != MILTER_UNKNOWN) {
		filter_move(f, FILTER_ACCEPTS_MESSAGE);
		finish_message(f);
	}
	return STEP_NEXT;
}

static enum step discarded(struct filter *f)
{
	struct milter_chain *c = f->chain;
	c->edges->tell(c->owner, f->conf->title, "discard", NULL);
	forget_message(f);
	finish_message(f);
	c->discards = f->conf->title;
	c->verdict = (struct milter_verdict){.outcome = MILTER_DISCARD, .filter = f->conf->title};
	return STEP_STOPS;
}

/* Its changes are made once it has said its last word, and STEP_WAITS, if that takes time. */
static enum step make_changes(struct filter *f)
{
	struct milter_chain *c = f->chain;
	int error = f->changes > 0 ? c->edges->changed(c->owner, f->conf->title) : 0;
	f->changes = 0;
	c->settling = error == EINPROGRESS;
	if (c->settling)
		return STEP_WAITS;
	return error ? broken(f, error) : STEP_NEXT;
}

/* What it has answered, and whether there is more for it. True: there is. */
static bool obey(struct filter *f, enum milter_event event, const struct milter_answer *a,
		 enum step *step)
{
	*step = STEP_NEXT;
	switch (a->kind) {
	case MILTER_ANSWER_ACCEPT:
		*step = event == MILTER_END_OF_BODY ? make_changes(f) : STEP_NEXT;
		if (*step == STEP_NEXT || *step == STEP_WAITS)
			accepted(f, event);
		return event == MILTER_UNKNOWN;
	case MILTER_ANSWER_REJECT:
		*step = refused(f, event, rejected);
		return false;
	case MILTER_ANSWER_TEMPFAIL:
		*step = refused(f, event, tempfailed);
		return false;
	case MILTER_ANSWER_REPLY:
		*step = refused(f, event, a->reply);
		return false;
	case MILTER_ANSWER_SHUTDOWN:
		*step = refused(f, event, shut_down);
		return false;
	case MILTER_ANSWER_DISCARD:
		*step = discarded(f);
		return false;
	case MILTER_ANSWER_GIVE_UP:
		*step = failed(f, "it has given up");
		return false;
	case MILTER_ANSWER_SKIP:
		milter_content_skip(&f->content, event);
		return true;
	default:
		if (event != MILTER_END_OF_BODY)
			return true;
		*step = make_changes(f);
		finish_message(f);
		return false;
	}
}

static void answered(struct filter *f, const struct milter_answer *a)
{
	struct milter_chain *c = f->chain;
	enum milter_event event = f->link->engine.asked;
	enum step step;
	told(f, event);
	if (obey(f, event, a, &step))
		go_on(c);
	else if (step != STEP_WAITS)
		conclude(c, step);
}

static bool change(struct filter *f, const struct milter_answer *a)
{
	struct milter_chain *c = f->chain;
	const char *wrong =
		++f->changes > CHANGES_MAX ? "it changes too much" : c->edges->change(c->owner, a);
	if (wrong)
		conclude(c, failed(f, wrong));
	return !wrong;
}

/* An idle connection that served others before may have ended just now: another then, as long as nothing
 * depends on it. */
static bool may_begin_again(const struct filter *f)
{
	const struct milter_chain *c = f->chain;
	bool message = (f->told & BIT(MAIL)) != 0;
	return f->link->reused && !message &&
	       (is_session_event(c->event) || c->event == MILTER_MAIL);
}

static bool is_at_work(const struct filter *f)
{
	const struct milter_chain *c = f->chain;
	return c->at < c->n && f == &c->filter[c->at] && f->state == FILTER_WORKS && !c->settling;
}

static void lost(struct filter *f)
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
		conclude(c, failed(f, why));
	} else {
		bool message = f->told & BIT(MAIL);
		milter_link_drop(&f->link);
		f->told = 0;
		if (message) {
			milter_link_broke(f->conf, why);
			filter_move(f, FILTER_FAILED);
			c->edges->tell(c->owner, f->conf->title, action_text(f), why);
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
		return change(f, a);
	case MILTER_LINK_ANSWER:
		answered(f, a);
		return true;
	default:
		lost(f);
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

static void filter_fini(struct filter *f)
{
	milter_content_fini(&f->content);
	milter_link_put(&f->link);
	free(f->refusal);
}

void milter_chain_free(struct milter_chain **cp)
{
	struct milter_chain *c = *cp;
	if (!c)
		return;
	*cp = NULL;
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

bool milter_chain_more(const struct milter_chain *c)
{
	for (int i = c->at + 1; i < c->n; i++)
		if (c->filter[i].state == FILTER_WORKS)
			return true;
	return false;
}

static bool begin(struct milter_chain *c, enum milter_event event)
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
	return run(c);
}

static void forget(struct milter_chain *c, enum milter_event event)
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
	return begin(c, MILTER_CONNECT);
}

bool milter_chain_helo(struct milter_chain *c, const char *name)
{
	buf_clear(&c->helo);
	milter_put_text(&c->helo, name);
	forget(c, MILTER_HELO);
	return begin(c, MILTER_HELO);
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
	return begin(c, MILTER_MAIL);
}

bool milter_chain_rcpt(struct milter_chain *c, const char *path, const char *parameters)
{
	put_arguments(&c->data, path, parameters);
	return begin(c, MILTER_RCPT);
}

bool milter_chain_data(struct milter_chain *c)
{
	buf_clear(&c->data);
	return begin(c, MILTER_DATA);
}

bool milter_chain_unknown(struct milter_chain *c, const char *line)
{
	buf_clear(&c->data);
	milter_put_text(&c->data, line);
	return begin(c, MILTER_UNKNOWN);
}

bool milter_chain_content(struct milter_chain *c, const struct draft *d, const int *hidden)
{
	c->draft = d;
	c->hidden = hidden;
	return begin(c, MILTER_END_OF_BODY);
}

bool milter_chain_go_on(struct milter_chain *c)
{
	assert(c->settling);
	c->settling = false;
	c->at++;
	begin_filter(c);
	return run(c);
}

/* It owes an answer, to what nobody asks any more; or has to be told that the message is none. */
static void end_message(struct filter *f)
{
	if (f->link && f->link->ready && f->link->engine.state != MILTER_IDLE) {
		milter_link_drop(&f->link);
		f->told = 0;
	} else if (f->told & BIT(MAIL)) {
		milter_link_abort(f->link);
		f->told &= ~(BIT(MAIL) | BIT(DATA));
	}
}

void milter_chain_end(struct milter_chain *c)
{
	for (int i = 0; i < c->n; i++) {
		struct filter *f = &c->filter[i];
		forget_message(f);
		end_message(f);
		if (f->state == FILTER_ACCEPTS_MESSAGE || f->state == FILTER_FAILED)
			filter_move(f, FILTER_WORKS);
	}
	c->at = c->n;
	c->settling = c->holds = false;
	c->discards = NULL;
	buf_clear(&c->data);
}
