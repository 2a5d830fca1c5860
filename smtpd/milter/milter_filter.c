/* SPDX-License-Identifier: ISC */
#include "smtpd/milter/milter_chain_impl.h"

#include "base/mem.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

bool milter_is_of_session(enum milter_event e)
{
	return e == MILTER_CONNECT || e == MILTER_HELO || e == MILTER_UNKNOWN;
}

static bool is_legal(enum filter_state from, enum filter_state to)
{
	bool of_session = from == FILTER_ACCEPTS_SESSION || from == FILTER_REFUSES_SESSION;
	return from == to || from == FILTER_WORKS || (to == FILTER_WORKS && !of_session);
}

void milter_filter_move(struct filter *f, enum filter_state to)
{
	assert(is_legal(f->state, to));
	f->state = to;
}

enum step milter_filter_refuse(struct filter *f, const char *reply)
{
	struct milter_chain *c = f->chain;
	buf_clear(&c->reply);
	buf_puts(&c->reply, reply);
	c->verdict = (struct milter_verdict){
		.outcome = MILTER_REFUSE, .reply = buf_cstr(&c->reply), .filter = f->conf->title};
	return STEP_STOPS;
}

static int action_of(const struct filter *f)
{
	return f->chain->insists ? MILTER_DEFAULT_TEMPFAIL : (int)f->conf->default_action;
}

/* Of one that failed. */
static enum step default_action(struct filter *f)
{
	switch (action_of(f)) {
	case MILTER_DEFAULT_ACCEPT:
		return STEP_NEXT;
	case MILTER_DEFAULT_QUARANTINE:
		f->chain->holds = true;
		return STEP_NEXT;
	case MILTER_DEFAULT_REJECT:
		return milter_filter_refuse(f, MILTER_REJECTED);
	default:
		return milter_filter_refuse(f, MILTER_TEMPFAILED);
	}
}

void milter_filter_write_off(struct filter *f, const char *why)
{
	struct milter_chain *c = f->chain;
	milter_filter_move(f, FILTER_FAILED);
	c->edges->tell(c->owner, f->conf->title, conf_milter_action(action_of(f)), why);
}

void milter_filter_forget(struct filter *f)
{
	if (f->changes > 0)
		f->chain->edges->unchanged(f->chain->owner);
	f->changes = 0;
	milter_content_fini(&f->content);
}

/* At CONNECT and HELO nothing is lost yet: it is tried again when there is mail. In a message it must not
 * be asked about what it has not seen. */
enum step milter_filter_failed(struct filter *f, const char *why)
{
	struct milter_chain *c = f->chain;
	char *reason = mem_strdup(why);
	bool message = (f->told & MILTER_BIT(MAIL)) != 0;
	bool at_work = f->link && f->link->ready;
	milter_health_broke(f->conf, at_work ? MILTER_MESSAGE_FAULT : MILTER_UNREACHED, reason);
	milter_link_drop(&f->link);
	milter_filter_forget(f);
	f->told = 0;
	enum step next = STEP_NEXT;
	if (message || !milter_is_of_session(c->event))
		milter_filter_write_off(f, reason);
	if (!milter_is_of_session(c->event))
		next = default_action(f);
	free(reason);
	return next;
}

/* The step that the filter is to be told next for the event at work; MILTER_EVENT_COUNT: none. */
static enum milter_event due_event(const struct filter *f)
{
	const struct milter_chain *c = f->chain;
	if (f->done)
		return MILTER_EVENT_COUNT;
	if (!(f->told & MILTER_BIT(CONNECT)))
		return MILTER_CONNECT;
	if (c->event == MILTER_CONNECT)
		return MILTER_EVENT_COUNT;
	if (!(f->told & MILTER_BIT(HELO)) && buf_len(&c->helo) > 0)
		return MILTER_HELO;
	if (c->event == MILTER_HELO)
		return MILTER_EVENT_COUNT;
	if (c->event == MILTER_UNKNOWN)
		return MILTER_UNKNOWN;
	if (!(f->told & MILTER_BIT(MAIL)))
		return MILTER_MAIL;
	if (c->event == MILTER_MAIL)
		return MILTER_EVENT_COUNT;
	/* Content in chunks has had no DATA. */
	if (c->event == MILTER_END_OF_BODY && !(f->told & MILTER_BIT(DATA)))
		return MILTER_DATA;
	return c->event == MILTER_END_OF_BODY ? milter_content_due(&f->content) : c->event;
}

void milter_filter_told(struct filter *f, enum milter_event event)
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

enum step milter_filter_broken(struct filter *f, int error)
{
	f->chain->verdict = (struct milter_verdict){
		.outcome = MILTER_FAIL, .filter = f->conf->title, .error = error};
	return STEP_STOPS;
}

/* Tell it one thing. STEP_WAITS: for its answer, or until it has read more. */
static enum step tell_event(struct filter *f, enum milter_event event)
{
	struct milter_chain *c = f->chain;
	if (milter_link_full(f->link))
		return STEP_WAITS;
	if (!milter_engine_wants(&f->link->engine, event)) {
		if (event == MILTER_BODY || event == MILTER_HEADER)
			milter_content_skip(&f->content, event);
		else
			milter_filter_told(f, event);
		return STEP_NEXT;
	}
	const struct buf *data = data_of(f, event);
	if (!data)
		return milter_filter_broken(f, errno);
	milter_engine_macros(&f->link->engine, event, c->edges->macro, c->owner,
			     milter_link_out(f->link));
	if (milter_link_ask(f->link, event, buf_data(data), buf_len(data)))
		return STEP_WAITS;
	milter_filter_told(f, event);
	return STEP_NEXT;
}

/* A verdict that has been given holds, whichever filter is asked. */
static enum step settled_step(struct filter *f)
{
	bool unknown = f->chain->event == MILTER_UNKNOWN;
	if (f->state == FILTER_REFUSES_SESSION && !unknown)
		return milter_filter_refuse(f, f->refusal);
	if (f->state == FILTER_FAILED && !milter_is_of_session(f->chain->event))
		return default_action(f);
	return STEP_NEXT;
}

/* Go on with one filter. */
enum step milter_filter_advance(struct filter *f, milter_link_handler *handler)
{
	struct milter_chain *c = f->chain;
	if (f->state != FILTER_WORKS)
		return settled_step(f);
	if (!f->link) {
		f->link = milter_link_get(c->milters, f->conf, handler, f);
		if (!f->link)
			return milter_filter_failed(f, "it could not be reached just now");
	}
	if (!f->link->ready)
		return STEP_WAITS;
	enum milter_event event;
	while ((event = due_event(f)) != MILTER_EVENT_COUNT) {
		enum step step = tell_event(f, event);
		if (step != STEP_NEXT)
			return step;
	}
	return STEP_NEXT;
}
