/* SPDX-License-Identifier: ISC */
#include "smtpd/reception.h"

#include "base/clock.h"
#include "base/ident.h"
#include "base/log.h"
#include "base/mem.h"
#include "smtpd/budget.h"
#include "smtpd/received.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { ALLOCATED = 24 }; /* bytes that a small piece of memory costs besides */

struct reception *reception_new(struct spool *spool, const char *sender)
{
	struct reception *t = mem_zalloc(sizeof *t);
	t->spool = spool;
	spool_expect(spool, 1);
	t->envelope = envelope_new();
	t->envelope->sender = mem_strdup(sender);
	t->sender = mem_strdup(sender);
	return t;
}

void reception_free(struct reception **tp)
{
	struct reception *t = *tp;
	if (!t)
		return;
	budget_charge(&t->charged, 0);
	rcpt_pending_free(&t->pending);
	if (t->began_ms)
		intake_fini(&t->intake);
	envelope_free(&t->envelope);
	spool_expect(t->spool, -1);
	free(t->sender);
	free(t);
	*tp = NULL;
}

void reception_begin(struct session *s, bool dots)
{
	struct reception *t = s->tx;
	assert(!t->began_ms && t->envelope);
	struct intake *in = &t->intake;
	const struct service *service = s->service;
	struct buf field;
	t->began_ms = clock_steady_ms();
	t->id = ident_new();
	intake_init(in, s->worker->spool, t->id, t->announced);
	in->decoder.dots = dots;
	in->decoder.normalise = service->listener->bare_newline == BARE_NEWLINE_NORMALISE;
	in->decoder.line_limit = (uint64_t)service->listener->line_limit;
	in->decoder.size_limit = (uint64_t)service->conf->message_size_limit;
	if (service->listener->add_missing_headers || s->login)
		intake_add_missing(in, service->hostname, t->sender);
	intake_rewrite(in, s->worker->conf);
	buf_init(&field);
	received_field(s, &field);
	intake_put(in, buf_data(&field), buf_len(&field));
	buf_fini(&field);
}

bool reception_full(const struct session *s)
{
	return budget_spent(s->service->conf);
}

void reception_added(struct session *s, uint32_t from)
{
	struct reception *t = s->tx;
	for (uint32_t i = from; i < t->envelope->nrcpt; i++) {
		const struct recipient *r = &t->envelope->rcpt[i];
		t->recipient_bytes += sizeof *r + ALLOCATED + strlen(r->address) +
				      (r->orcpt ? ALLOCATED + strlen(r->orcpt) : 0);
	}
	budget_charge(&t->charged, t->recipient_bytes);
}

void reception_feed(struct session *s, const char *bytes, size_t *len)
{
	struct reception *t = s->tx;
	t->intake.spills = reception_full(s);
	*len = content_in_feed(&t->intake.decoder, bytes, *len);
	budget_charge(&t->charged, t->recipient_bytes + buf_len(&t->intake.memory));
}

enum response reception_verdict(const struct session *s)
{
	const struct intake *in = &s->tx->intake;
	enum response why =
		intake_judge(&in->decoder, &in->header, s->service->conf->hopcount_limit);
	return why == RESPONSE_OK && intake_error(in) ? RESPONSE_NO_ROOM : why;
}

static struct log_held *hold_log(const struct session *s)
{
	const struct reception *t = s->tx;
	const char *message_id = t->intake.header.id;
	char client[64];
	return log_hold(LOG_LEVEL_INFO, "queued", "id", log_id(t->id), "session", log_id(s->number),
			"client", address_text(&s->peer, client), "from", t->sender, "nrcpt",
			log_number(t->nrcpt), "size", log_number((int64_t)t->size), "message_id",
			*message_id ? message_id : NULL, "helo", s->helo, "user", s->login, NULL);
}

void reception_store(struct session *s, uint64_t ticket)
{
	struct reception *t = s->tx;
	assert(s->state == SESSION_WAIT && t->envelope && t->envelope->nrcpt > 0);
	struct spool_store *ask = mem_zalloc(sizeof *ask);
	t->size = intake_take(&t->intake, &ask->content, &ask->file);
	t->nrcpt = t->envelope->nrcpt;
	t->envelope->id = ask->id = t->id;
	t->envelope->arrived_ms = clock_wall_ms();
	t->envelope->size = t->size;
	intake_mark(&t->intake, t->envelope);
	ask->note.type = SPOOL_STORE;
	ask->posted_us = clock_steady_us();
	ask->answered_us = s->answered_us;
	ask->reply_to = s->worker->loop;
	ask->ticket = ticket;
	ask->envelope = t->envelope;
	ask->log = hold_log(s);
	t->envelope = NULL;
	budget_charge(&t->charged, 0);
	spool_post(s->worker->spool, &ask->note);
}

enum response reception_end(struct session *s)
{
	intake_finish(&s->tx->intake);
	return reception_verdict(s);
}
