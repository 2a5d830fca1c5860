/* SPDX-License-Identifier: ISC */
#include "smtpd/milter/milter_chain_impl.h"

#include "base/mem.h"

#include <errno.h>
#include <stdlib.h>

/* A message has had its last word of this filter. */
static void finish_message(struct filter *f)
{
	f->told &= ~(MILTER_BIT(MAIL) | MILTER_BIT(DATA));
	milter_health_passed(f->conf);
	milter_content_fini(&f->content);
}

static enum step take_refusal(struct filter *f, enum milter_event event, const char *reply)
{
	struct milter_chain *c = f->chain;
	const char *action = reply[0] == '4' ? "tempfail" : "reject";
	c->edges->tell(c->owner, f->conf->title, action, NULL);
	if (event == MILTER_CONNECT) {
		free(f->refusal);
		f->refusal = mem_strdup(reply);
		milter_filter_move(f, FILTER_REFUSES_SESSION);
	} else if (event == MILTER_HELO) {
		f->told &= ~MILTER_BIT(HELO);
	} else if (event != MILTER_RCPT && event != MILTER_UNKNOWN) {
		milter_filter_forget(f);
		finish_message(f);
	}
	return milter_filter_refuse(f, reply);
}

static enum step take_acceptance(struct filter *f, enum milter_event event)
{
	if (event == MILTER_CONNECT || event == MILTER_HELO) {
		milter_filter_move(f, FILTER_ACCEPTS_SESSION);
	} else if (event != MILTER_UNKNOWN) {
		milter_filter_move(f, FILTER_ACCEPTS_MESSAGE);
		finish_message(f);
	}
	return STEP_NEXT;
}

static enum step take_discard(struct filter *f)
{
	struct milter_chain *c = f->chain;
	c->edges->tell(c->owner, f->conf->title, "discard", NULL);
	milter_filter_forget(f);
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
	return error ? milter_filter_broken(f, error) : STEP_NEXT;
}

/* The filter's answer is taken. True: there is more to tell it. */
bool milter_filter_obey(struct filter *f, enum milter_event event, const struct milter_answer *a,
			enum step *step)
{
	*step = STEP_NEXT;
	switch (a->kind) {
	case MILTER_ANSWER_ACCEPT:
		*step = event == MILTER_END_OF_BODY ? make_changes(f) : STEP_NEXT;
		if (*step == STEP_NEXT || *step == STEP_WAITS)
			take_acceptance(f, event);
		return event == MILTER_UNKNOWN;
	case MILTER_ANSWER_REJECT:
		*step = take_refusal(f, event, MILTER_REJECTED);
		return false;
	case MILTER_ANSWER_TEMPFAIL:
		*step = take_refusal(f, event, MILTER_TEMPFAILED);
		return false;
	case MILTER_ANSWER_REPLY:
		*step = take_refusal(f, event, a->reply);
		return false;
	case MILTER_ANSWER_SHUTDOWN:
		*step = take_refusal(f, event, MILTER_SHUT_DOWN);
		return false;
	case MILTER_ANSWER_DISCARD:
		*step = take_discard(f);
		return false;
	case MILTER_ANSWER_GIVE_UP:
		*step = milter_filter_failed(f, "it has given up");
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
