/* SPDX-License-Identifier: ISC */
#include "smtpd/session.h"

#include "base/log.h"
#include "base/metrics.h"
#include "smtpd/reception.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const unsigned may_follow[] = {
#define S(name, text, reader, after) [SESSION_##name] = after,
	SESSION_STATES(S)
#undef S
};

static bool is_legal(const struct session *s, enum session_state to)
{
	if (s->state == SESSION_WAIT)
		return to == s->wait.from;
	if (to == SESSION_WAIT)
		return SESSION_MAY_WAIT & 1U << s->state;
	return to == s->state || to == SESSION_CLOSED || (may_follow[s->state] & 1U << to);
}

void session_count(const struct session *s, int n)
{
	enum session_state state = s->state == SESSION_WAIT ? s->wait.from : s->state;
	bool between =
		state == SESSION_GREETED || state == SESSION_READY || state == SESSION_CLOSED;
	metrics_add(state == SESSION_HANDSHAKE ? METRIC_server_handshake
		    : between		       ? METRIC_server_idle
					       : METRIC_server_transaction,
		    n);
}

void session_move(struct session *s, enum session_state to)
{
	assert(is_legal(s, to));
	/* A client that has gone is counted no more, whatever still happens to its message. */
	if (s->stream)
		session_count(s, -1);
	s->state = to;
	if (s->stream)
		session_count(s, 1);
	s->begun_ms = 0;
}

const char *session_protocol(const struct session *s)
{
	static const char *const names[2][2][2] = {
		{{"ESMTP", "ESMTPA"}, {"ESMTPS", "ESMTPSA"}},
		{{"UTF8SMTP", "UTF8SMTPA"}, {"UTF8SMTPS", "UTF8SMTPSA"}},
	};
	bool utf8 = s->tx && s->tx->envelope && s->tx->envelope->smtputf8;
	if (!s->esmtp)
		return "SMTP";
	return names[utf8][s->tls][s->login != NULL];
}

__attribute__((format(printf, 2, 3))) static void put_line(struct session *s, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	if (s->stream)
		buf_vprintf(stream_out(s->stream), fmt, args);
	va_end(args);
}

void session_end(struct session *s, enum response why)
{
	s->ending = why;
	session_move(s, SESSION_CLOSED);
}

void session_reply(struct session *s, enum response r, ...)
{
	va_list args;
	va_start(args, r);
	if (s->stream)
		response_vprint(stream_out(s->stream), r, args);
	va_end(args);
}

static void log_reject(struct session *s, int code, const char *dsn, const char *reason,
		       const char *to)
{
	char client[64];
	metric_cell_add(metric_cell(FAMILY_rejects, s->stage, NULL), 1);
	log_event(LOG_LEVEL_INFO, "reject", "session", log_id(s->number), "client",
		  address_text(&s->peer, client), "stage", s->stage, "code", log_number(code),
		  "dsn", dsn, "reason", reason, "from", s->tx ? s->tx->sender : NULL, "to", to,
		  "helo", s->helo, "proto", session_protocol(s), NULL);
}

void session_log_reject(struct session *s, enum response r, const char *to)
{
	const struct response_row *row = response_row(r);
	log_reject(s, row->code, row->dsn, response_reason(r), to);
}

void session_refuse_as(struct session *s, const struct access_value *v, const char *to)
{
	put_line(s, "%d %s %s\r\n", v->code, v->dsn, v->text);
	log_reject(s, v->code, v->dsn, v->text, to);
	s->errors++;
}

void session_refuse_with(struct session *s, enum response r, const char *to, ...)
{
	const struct response_row *row = response_row(r);
	struct buf line = {0};
	va_list args;
	va_start(args, to);
	response_vprint(&line, r, args);
	va_end(args);
	put_line(s, "%s", buf_cstr(&line));
	const char *text = buf_cstr(&line) + strlen("450 ") + strlen(row->dsn) + strlen(" ");
	log_reject(s, row->code, row->dsn, log_text("%.*s", (int)strcspn(text, "\r"), text), to);
	buf_fini(&line);
	s->errors++;
}

/* A reply without an enhanced code has that of its class; the log has its first line. */
void session_refuse_by(struct session *s, const char *reply, const char *to)
{
	assert(reply[0] == '4' || reply[0] == '5');
	char dsn[16] = "";
	int code = 0, begins = 0;
	if (sscanf(reply, "%3d%*[- ]%15[0-9.] %n", &code, dsn, &begins) < 2)
		snprintf(dsn, sizeof dsn, "%c.0.0", reply[0]);
	const char *text = begins ? reply + begins : reply;
	if (s->stream)
		response_put_given(stream_out(s->stream), reply);
	log_reject(s, code, dsn, log_text("%.*s", (int)strcspn(text, "\r"), text), to);
	s->errors++;
	if (code == 421)
		session_end(s, RESPONSE_FILTER_CLOSES);
}

void session_refuse(struct session *s, enum response r, const char *to)
{
	session_reply(s, r, s->service->hostname);
	session_log_reject(s, r, to);
	s->errors++;
}

void session_close(struct session *s, enum response r)
{
	session_reply(s, r, s->service->hostname);
	if (response_row(r)->code >= 400)
		session_log_reject(s, r, NULL);
	session_end(s, r);
}

void session_count_junk(struct session *s)
{
	int64_t limit = s->service->listener->junk_command_limit;
	if (limit && ++s->junk > limit)
		s->errors++;
}
