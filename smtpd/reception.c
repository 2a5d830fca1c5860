/* SPDX-License-Identifier: ISC */
#include "smtpd/reception.h"

#include "base/dkim_rows.h"
#include "base/fence.h"
#include "base/clock.h"
#include "base/date.h"
#include "base/ident.h"
#include "base/internet_time.h"
#include "base/log.h"
#include "base/mem.h"
#include "dkim/dkim.h"
#include "smtpd/addressing.h"
#include "smtpd/filtering.h"
#include "smtpd/flow_name.h"
#include "smtpd/header_check.h"
#include "smtpd/policy.h"
#include "smtpd/received.h"
#include "stages/archive.h"
#include "stages/budget.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { ALLOCATED = 24 }; /* bytes that a small piece of memory costs besides */

void reception_linger(struct reception *t, bool lingers)
{
	if (t->expected == lingers)
		spool_expect(t->spool, lingers ? -1 : 1);
	t->expected = !lingers;
}

struct reception *reception_new(struct spool *spool, const char *sender)
{
	struct reception *t = mem_zalloc(sizeof *t);
	t->spool = spool;
	reception_linger(t, false);
	t->envelope = envelope_new();
	t->envelope->sender = mem_strdup(sender);
	t->sender = mem_strdup(sender);
	t->mail_from = mem_strdup(sender);
	return t;
}

void reception_sender(struct reception *t, const char *sender)
{
	free(t->envelope->sender);
	free(t->sender);
	t->envelope->sender = mem_strdup(sender);
	t->sender = mem_strdup(sender);
}

void reception_free(struct reception **tp)
{
	struct reception *t = *tp;
	if (!t)
		return;
	budget_charge(&t->charged, 0);
	rcpt_pending_free(&t->pending);
	alias_learn_end(&t->aliases);
	passage_free(&t->passage);
	if (t->began_ms)
		intake_fini(&t->intake);
	envelope_free(&t->envelope);
	reception_linger(t, true);
	access_value_fini(&t->access);
	free(t->flow_named);
	free(t->flow_row);
	free(t->limits_row);
	free(t->mail_from);
	free(t->sender);
	free(t);
	*tp = NULL;
}

void reception_reset(struct session *s)
{
	filtering_reset(s);
	reception_free(&s->tx);
	session_move(s, s->helo ? SESSION_READY : SESSION_GREETED);
}

void reception_name(struct reception *t)
{
	if (!t->id)
		t->id = ident_new();
}

void reception_begin(struct session *s, bool dots)
{
	struct reception *t = s->tx;
	assert(!t->began_ms && t->envelope);
	struct intake *in = &t->intake;
	const struct service *service = s->service;
	struct buf field = {0};
	t->began_ms = clock_steady_ms();
	reception_name(t);
	intake_init(in, s->worker->spool, t->id, t->announced);
	in->decoder.dots = dots;
	in->decoder.normalise = service->listener->bare_newline == BARE_NEWLINE_NORMALISE;
	in->decoder.line_limit = (uint64_t)service->listener->line_limit;
	in->decoder.size_limit = (uint64_t)service->conf->message_size_limit;
	if (service->listener->add_missing_headers || s->login)
		intake_add_missing(in, service->hostname, t->sender);
	intake_use(in, s->worker->conf);
	received_field(s, &field);
	intake_put(in, buf_data(&field), buf_len(&field));
	buf_fini(&field);
}

bool reception_full(const struct session *s)
{
	return budget_spent(s->service->conf);
}

enum response reception_room(const struct session *s)
{
	if (!fence_open())
		return RESPONSE_FENCED;
	if (spool_accepting(s->worker->spool))
		return RESPONSE_OK;
	return spool_uncopied(s->worker->spool) ? RESPONSE_NOT_COPIED : RESPONSE_NO_ROOM;
}

void reception_added(struct session *s, const struct alias_added *what)
{
	struct reception *t = s->tx;
	assert(what->from <= what->to && what->to <= t->envelope->nrcpt);
	for (uint32_t i = what->from; i < what->to; i++) {
		const struct recipient *r = &t->envelope->rcpt[i];
		t->recipient_bytes += sizeof *r + ALLOCATED + strlen(r->address) +
				      (r->orcpt ? ALLOCATED + strlen(r->orcpt) : 0);
	}
	/* Filters may delete who is named so, too: for that it is remembered. */
	t->besides += what->nagain;
	t->recipient_bytes +=
		s->filtering ? what->nagain * (sizeof(struct recipient) + ALLOCATED) : 0;
	budget_charge(&t->charged, t->recipient_bytes);
}

void reception_feed(struct session *s, const char *bytes, size_t *len)
{
	struct reception *t = s->tx;
	assert(t->began_ms && !t->passage);
	t->intake.out.spills = reception_full(s);
	*len = content_in_feed(&t->intake.decoder, bytes, *len);
	if (t->intake.out.file)
		reception_linger(t, true);
	budget_charge(&t->charged, t->recipient_bytes + buf_len(&t->intake.out.memory));
}

enum response reception_verdict(const struct session *s)
{
	const struct intake *in = &s->tx->intake;
	enum response why =
		intake_judge(&in->decoder, &in->header, s->service->conf->hopcount_limit);
	return why == RESPONSE_OK && intake_error(in) ? RESPONSE_NO_ROOM : why;
}

/* By the calendar; NULL: now. */
static const char *release_text(const struct envelope *e, char text[INTERNET_TIME_TEXT])
{
	int64_t ahead_ms = e->not_before_ms - clock_wall_ms();
	return e->not_before_ms > 0 && ahead_ms > 0 ? internet_time_text(date_ms() + ahead_ms, text)
						    : NULL;
}

static struct log_held *hold_log(const struct session *s, const struct envelope *e)
{
	const struct reception *t = s->tx;
	char release[INTERNET_TIME_TEXT];
	const char *message_id = t->intake.header.id;
	return log_hold(LOG_LEVEL_INFO, "queued", "id", log_id(t->id), "session", log_id(s->number),
			"client", t->client, "from", t->sender, "nrcpt", log_number(t->nrcpt),
			"size", log_number((int64_t)t->size), "message_id",
			*message_id ? message_id : NULL, "helo", s->helo, "user", s->login, "flow",
			t->flow, "signed", t->passage ? t->passage->signed_by : NULL, "not_before",
			release_text(e, release), "held", e->held ? "yes" : NULL, NULL);
}

static char *client_text(const struct session *s)
{
	char address[64];
	return mem_printf("%s%s[%s]", s->client_name ? s->client_name : "",
			  s->client_name ? " " : "", address_text(&s->peer, address));
}

static bool knows_copies(void *owner)
{
	const struct passage *p = owner;
	const struct session *s = passage_context(p);
	return addressing_copies_known(p->conf, &s->tx->aliases.heard, p->draft.envelope->sender);
}

static void learnt_copies(void *owner, bool failed)
{
	struct passage *p = owner;
	struct session *s = passage_context(p);
	if (failed) {
		alias_learn_refuse(p);
		return;
	}
	addressing_copies(p->conf, &s->tx->aliases.heard, p->draft.envelope);
	passage_next(p);
}

/* Filters may have changed the sender; and the archive is to see who else has it. */
static void add_copies(struct passage *p)
{
	struct session *s = passage_context(p);
	const struct alias_learner by = {.maps = s->worker->socketmaps,
					 .conf = p->conf,
					 .session = s->number,
					 .known = knows_copies,
					 .learnt = learnt_copies,
					 .owner = p};
	if (p->draft.envelope->nrcpt == 0) {
		passage_next(p);
		return;
	}
	p->at_work = s;
	enum alias_learnt so_far = alias_learn(&s->tx->aliases, &by);
	if (so_far != ALIAS_WAITS)
		learnt_copies(p, so_far == ALIAS_FAILED);
}

static void cancel_copies(struct passage *p)
{
	struct session *s = p->at_work;
	alias_learn_end(&s->tx->aliases);
}

static const struct passage_stage copies_stage = {.begin = add_copies, .cancel = cancel_copies};

bool reception_stages(struct session *s)
{
	struct reception *t = s->tx;
	struct conf *c = s->worker->conf;
	struct smtpd_worker *w = s->worker;
	assert(!t->passage && t->envelope);
	bool checked = header_check_wanted(c, s->login);
	if (!dkim_rows_signs(c) && !s->filtering && !checked && !archive_wanted(c))
		return false;
	struct passage *p = t->passage = passage_new(c, w->loop, w->pool, w->spool, t->id);
	p->draft.size = intake_take(&t->intake, &p->draft.content, &p->draft.file);
	p->draft.envelope = t->envelope;
	p->login = mem_strdup(s->login);
	p->own = t->own ? mem_strdup(t->mail_from) : NULL;
	p->client = client_text(s);
	p->stranger = policy_stranger(s);
	t->envelope = NULL;
	if (checked)
		passage_add(p, &header_check_stage, NULL);
	filtering_stage(s, p);
	passage_add(p, &copies_stage, s);
	if (dkim_rows_signs(c))
		passage_add(p, &dkim_stage, NULL);
	if (archive_wanted(c))
		passage_add(p, &archive_stage, dkim_rows_signs(c) ? (void *)&dkim_stage : NULL);
	return true;
}

struct envelope *reception_envelope(const struct session *s)
{
	const struct reception *t = s->tx;
	return t->passage ? t->passage->draft.envelope : t->envelope;
}

/* Where stages have changed it, the sender too. */
static void take_content(struct reception *t, struct spool_store *ask)
{
	if (t->passage) {
		draft_give(&t->passage->draft, ask);
		free(t->sender);
		t->sender = mem_strdup(ask->envelope->sender);
		return;
	}
	assert(t->envelope && t->began_ms);
	ask->envelope = t->envelope;
	ask->envelope->size = intake_take(&t->intake, &ask->content, &ask->file);
	ask->envelope->id = ask->id = t->id;
	t->envelope = NULL;
}

void reception_store(struct session *s, uint64_t cookie)
{
	struct reception *t = s->tx;
	assert(s->state == SESSION_WAIT && reception_envelope(s)->nrcpt > 0);
	struct spool_store *ask = mem_zalloc(sizeof *ask);
	take_content(t, ask);
	ask->envelope = envelope_pack(ask->envelope);
	t->flow = ask->envelope->flow;
	t->client = ask->envelope->client;
	t->size = ask->envelope->size;
	t->nrcpt = ask->envelope->nrcpt;
	ask->envelope->arrived_ms = clock_wall_ms();
	ask->note.type = SPOOL_STORE;
	ask->promised = true;
	ask->posted_us = clock_steady_us();
	ask->answered_us = s->answered_us;
	ask->reply_to = s->worker->loop;
	ask->cookie = cookie;
	ask->log = hold_log(s, ask->envelope);
	budget_charge(&t->charged, 0);
	spool_post(s->worker->spool, &ask->note);
}

char *reception_flow(const struct session *s, const char *named)
{
	const struct reception *t = s->tx;
	const struct flow_facts facts = {.id = t->id,
					 .named = named,
					 .login = s->login,
					 .sender = t->sender,
					 .client = &s->peer,
					 .asked = t->flow_asked,
					 .row = t->flow_row};
	return t->flow_named ? mem_strdup(t->flow_named) : flow_name(s->worker->conf, &facts);
}

/* RFC 5321 4.5.1: a stranger writes to the postmaster, and names nothing. */
static void name_origin(struct session *s)
{
	struct reception *t = s->tx;
	const struct header_in *header = &t->intake.header;
	bool named = header->flow_named && !policy_stranger(s);
	char client[64];
	free(t->envelope->flow);
	t->envelope->flow = reception_flow(s, named ? header->flow : NULL);
	envelope_came_from(t->envelope, s->login, address_text(&s->peer, client));
}

enum response reception_end(struct session *s)
{
	assert(s->tx->began_ms && s->tx->envelope && !s->tx->passage);
	intake_finish(&s->tx->intake);
	intake_mark(&s->tx->intake, s->tx->envelope);
	if (!s->tx->prioritised)
		s->tx->envelope->priority = intake_priority(&s->tx->intake);
	name_origin(s);
	return reception_verdict(s);
}
