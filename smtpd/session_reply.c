/* SPDX-License-Identifier: ISC */
#include "smtpd/session.h"

#include "base/ident.h"
#include "base/log.h"
#include "base/metrics.h"
#include "smtpd/reception.h"

#include <stdio.h>
#include <string.h>

void session_reply(struct session *s, enum response r, ...)
{
	va_list args;
	va_start(args, r);
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
	buf_printf(stream_out(s->stream), "%d %s %s\r\n", v->code, v->dsn, v->text);
	log_reject(s, v->code, v->dsn, v->text, to);
	s->errors++;
}

void session_refuse_with(struct session *s, enum response r, const char *to, ...)
{
	const struct response_row *row = response_row(r);
	struct buf line;
	va_list args;
	va_start(args, to);
	buf_init(&line);
	response_vprint(&line, r, args);
	va_end(args);
	buf_append(stream_out(s->stream), buf_data(&line), buf_len(&line));
	const char *text = buf_cstr(&line) + strlen("450 ") + strlen(row->dsn) + strlen(" ");
	log_reject(s, row->code, row->dsn, log_text("%.*s", (int)strcspn(text, "\r"), text), to);
	buf_fini(&line);
	s->errors++;
}

/* "550 5.7.1 text"; a reply without such a code has that of its class. */
void session_refuse_by(struct session *s, const char *reply)
{
	char dsn[16] = "";
	int code = 0, begins = 0;
	if (sscanf(reply, "%d %15[0-9.] %n", &code, dsn, &begins) < 2)
		snprintf(dsn, sizeof dsn, "%c.0.0", reply[0]);
	buf_printf(stream_out(s->stream), "%s\r\n", reply);
	log_reject(s, code, dsn, reply + begins, NULL);
	s->errors++;
}

void session_refuse(struct session *s, enum response r, const char *to)
{
	session_reply(s, r, s->service->hostname);
	session_log_reject(s, r, to);
	s->errors++;
}
