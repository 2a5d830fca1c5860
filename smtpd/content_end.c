/* SPDX-License-Identifier: ISC */
#include "smtpd/content_end.h"

#include "base/fence.h"
#include "base/ident.h"
#include "base/log.h"
#include "base/log_forms.h"
#include "base/number.h"
#include "smtpd/addressing.h"
#include "smtpd/alias_wait.h"
#include "smtpd/limit_check.h"
#include "smtpd/reception.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

enum { LOOKS_SHARE = 8 }; /* of what a client was slowed down so far: then it looks again */

static enum response outcome_of(const struct spool_store *store)
{
	if (store->stored)
		return RESPONSE_QUEUED;
	if (!fence_open())
		return RESPONSE_FENCED;
	return store->uncopied ? RESPONSE_NOT_COPIED : RESPONSE_NO_ROOM;
}

/* As far as the client knows, its message was taken, which makes amends for what was noise. */
static void count_taken(struct session *s)
{
	s->messages++;
	s->errors = s->junk = 0;
}

static void heard_spool(struct session *s, void *answer)
{
	const struct spool_store *store = answer;
	assert(store->id == s->tx->id); /* else its client would hear of another's */
	char id[IDENT_TEXT];
	enum response is = outcome_of(store);
	s->answered_us = store->answered_us;
	if (store->stored) {
		limit_check_event(s, LIMITER_ACCEPTED, s->login, s->tx->nrcpt);
		count_taken(s);
	} else {
		session_log_reject(s, is, NULL);
		s->errors++;
	}
	session_reply(s, is, ident_text(s->tx->id, id));
	reception_reset(s);
}

/* The spool always answers, and has the message meanwhile. */
static void store_message(struct session *s)
{
	static const struct wait_kind kind = {
		.text = "store", .answered = heard_spool, .outlives = true};
	if (!s->tx->intake.out.file)
		reception_linger(s->tx, false);
	reception_store(s, wait_begin(s, &kind, 0));
}

/* While its flow has its share of the active queue and more, each sender waits a little before its message is stored, so that
 * mail does not come in faster than it goes out. Who waited on when the queue has caught up would leave it without work: so each
 * looks again and again, less often the longer it has waited. POSTFIX QSHAPE_README, in_flow_delay. */
static void store_in_time(struct session *s)
{
	static const struct wait_kind kind = {
		.text = "in_flow_delay", .expired = store_in_time, .outlives = true, .pause = true};
	struct reception *t = s->tx;
	int64_t left_ms = s->service->conf->queue.in_flow_delay - t->slowed_ms;
	if (left_ms <= 0 || s->worker->closing ||
	    !spool_behind(s->worker->spool, envelope_flow(reception_envelope(s)))) {
		store_message(s);
		return;
	}
	int64_t pause_ms = number_min(1 + t->slowed_ms / LOOKS_SHARE, left_ms);
	reception_linger(t, true);
	t->slowed_ms += pause_ms;
	wait_begin(s, &kind, pause_ms);
}

/* The client is not to know. */
static void drop_message(struct session *s, const char *why)
{
	char id[IDENT_TEXT], client[64];
	log_event(LOG_LEVEL_INFO, "discard", "id", log_id(s->tx->id), "session", log_id(s->number),
		  "client", address_text(&s->peer, client), "from", s->tx->sender, "reason", why,
		  NULL);
	count_taken(s);
	session_reply(s, RESPONSE_QUEUED, ident_text(s->tx->id, id));
	reception_reset(s);
}

static void refuse_message(struct session *s, enum response why)
{
	session_refuse(s, why, NULL);
	reception_reset(s);
}

static bool knows_copies(void *owner)
{
	struct session *s = owner;
	return addressing_copies_known(s->worker->conf, &s->tx->aliases.heard,
				       s->tx->envelope->sender);
}

static void add_copies(struct session *);

static void learnt_copies(struct session *s, void *answer)
{
	(void)answer;
	if (s->tx->aliases_failed)
		refuse_message(s, RESPONSE_LOOKUP_FAILED);
	else
		add_copies(s);
}

/* Who gets them may be an alias that a server has. */
static void add_copies(struct session *s)
{
	static const struct wait_kind kind = {.text = "aliases",
					      .answered = learnt_copies,
					      .ended = alias_wait_ended,
					      .outlives = true};
	switch (alias_wait(s, knows_copies, &kind)) {
	case ALIAS_KNOWN:
		addressing_copies(s->worker->conf, &s->tx->aliases.heard, s->tx->envelope);
		store_in_time(s);
		break;
	case ALIAS_FAILED:
		refuse_message(s, RESPONSE_LOOKUP_FAILED);
		break;
	case ALIAS_WAITS:
		break;
	}
}

/* Nothing stands in the way any more. */
static void take_message(struct session *s)
{
	struct envelope *e = reception_envelope(s);
	if (e->nrcpt == 0) {
		drop_message(s, LOG_NO_RECIPIENT);
		return;
	}
	if (s->tx->passage)
		store_in_time(s);
	else
		add_copies(s);
}

static bool is_no_room(int error)
{
	return error == ENOSPC || error == EDQUOT || error == EMFILE || error == ENFILE;
}

/* Nobody else says why. */
static void say_not_stored(const struct session *s, int error)
{
	log_event(LOG_LEVEL_ERROR, "not_stored", "id", log_id(s->tx->id), "session",
		  log_id(s->number), "error", strerror(error), NULL);
}

/* That the relay stops is no fault. */
static void fail_message(struct session *s, int error)
{
	if (error != ECANCELED)
		say_not_stored(s, error);
	refuse_message(s, is_no_room(error) ? RESPONSE_NO_ROOM : RESPONSE_NOT_PROCESSED);
}

/* The client may have gone, and is told nothing then: what becomes of its mail is the same, and so is the log. */
static void conclude_passage(struct session *s)
{
	const struct passage *p = s->tx->passage;
	assert(p->end != PASSAGE_UNDER_WAY);
	if (p->end == PASSAGE_DONE) {
		take_message(s);
	} else if (p->end == PASSAGE_REFUSED) {
		session_refuse_by(s, p->reply, NULL);
		if (s->state != SESSION_CLOSED)
			reception_reset(s);
	} else if (p->end == PASSAGE_DISCARDED) {
		drop_message(s, p->reply);
	} else {
		fail_message(s, p->error);
	}
}

static void heard_stages(struct session *s, void *answer)
{
	(void)answer;
	conclude_passage(s);
}

static void end_stages(struct passage *p)
{
	struct session *s = p->owner;
	wait_answered(s->worker, s->wait.cookie, p);
}

static void give_up_stages(struct session *s)
{
	passage_cancel(&s->tx->passage);
}

void content_refuse(struct session *s, enum response why)
{
	if (why == RESPONSE_NO_ROOM)
		say_not_stored(s, intake_error(&s->tx->intake));
	refuse_message(s, why);
}

void content_end(struct session *s)
{
	static const struct wait_kind kind = {.text = "stages",
					      .answered = heard_stages,
					      .ended = give_up_stages,
					      .outlives = true};
	assert(s->state == SESSION_DATA || s->state == SESSION_CHUNK);
	enum response why = reception_end(s);
	if (why != RESPONSE_OK)
		content_refuse(s, why);
	else if (s->tx->envelope->nrcpt == 0 || !reception_stages(s))
		take_message(s);
	else if (passage_run(s->tx->passage, end_stages, s))
		conclude_passage(s);
	else
		wait_begin(s, &kind, 0);
}
