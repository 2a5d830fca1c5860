/* SPDX-License-Identifier: ISC */
#include "smtpd/session_read.h"

#include "smtpd/auth.h"
#include "smtpd/command.h"
#include "smtpd/content_end.h"
#include "smtpd/filtering.h"
#include "smtpd/reception.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

enum { SWALLOW_MAX = 128 << 10 }; /* bytes of a line too long, before its sender is sent away */

/* Where the first CRLF begins; NULL: it has not come. */
static char *find_crlf(char *from, size_t len)
{
	char *end = from + len;
	for (char *p = from; (p = memchr(p, '\n', (size_t)(end - p))) != NULL; p++)
		if (p > from && p[-1] == '\r')
			return p - 1;
	return NULL;
}

/* The beginnings of TLS and of RDP: whoever knows no SMTP gets no second line. */
static bool is_foreign(const char *data, size_t len)
{
	return len >= 2 && ((data[0] == 0x16 && data[1] == 0x03) || (data[0] == 0x03 && !data[1]));
}

/* A line without end. Its last byte stays: it may be the CR. */
static bool swallow_line(struct session *s, struct buf *in, size_t max)
{
	size_t len = buf_len(in);
	if (s->swallowed + len < max)
		return false;
	s->swallowed += len - 1;
	buf_consume(in, len - 1);
	if (s->swallowed > SWALLOW_MAX)
		session_close(s, RESPONSE_LINE_TOO_LONG);
	return false;
}

static bool is_chunk(const char *line)
{
	return strncasecmp(line, "BDAT", 4) == 0;
}

/* The chunk behind a BDAT that can't be read would be taken for commands. */
static bool swallow_command(struct session *s, struct buf *in)
{
	size_t len = buf_len(in), max = command_max(buf_data(in), len);
	if (s->swallowed > 0 || len < max || !is_chunk(buf_data(in)))
		return swallow_line(s, in, max);
	session_close(s, RESPONSE_LINE_TOO_LONG);
	return false;
}

/* RFC 2920 3.1 lets EHLO stand only at the end of a group. Many clients know better, and no harm
 * comes of it; but before TLS nothing may ride along. */
static bool must_be_last(const struct command *c, bool tls_missing)
{
	return (c->flags & VERB_LAST) || (tls_missing && strcmp(c->name, "EHLO") == 0);
}

static void refuse_unknown(struct session *s, bool passed)
{
	if (passed)
		session_refuse(s, RESPONSE_UNKNOWN, NULL);
}

/* The line has been cut behind its first word. */
static void ask_about(struct session *s, char *line, size_t len)
{
	size_t word = strlen(line);
	if (word < len)
		line[word] = ' ';
	filtering_unknown(s, line, refuse_unknown);
}

static void obey_line(struct session *s, char *line, size_t len)
{
	struct command c;
	bool tls_missing = !s->tls && s->service->listener->tls == LISTENER_TLS_REQUIRED;
	bool chunk = is_chunk(line);
	enum response why = command_split(line, len, &c);
	s->stage = *c.name ? c.name : "COMMAND";
	if (*c.name && must_be_last(&c, tls_missing) && buf_len(stream_in(s->stream)) > 0) {
		session_close(s, RESPONSE_OUT_OF_STEP);
		return;
	}
	if (why == RESPONSE_UNKNOWN && !chunk) {
		ask_about(s, line, len);
		return;
	}
	if (why == RESPONSE_OK)
		why = command_check(&c, s->state, tls_missing);
	if (why != RESPONSE_OK) {
		if (chunk) /* as in swallow_command() */
			session_close(s, why);
		else
			session_refuse(s, why, NULL);
		return;
	}
	if (c.flags & VERB_JUNK)
		session_count_junk(s);
	c.handler(s, c.argument);
	if (c.flags & VERB_SECRET)
		explicit_bzero(line, len);
}

static bool read_command(struct session *s)
{
	struct buf *in = stream_in(s->stream);
	int64_t limit = s->service->listener->error_limit;
	if (s->worker->closing) {
		session_close(s, RESPONSE_CLOSING);
		return false;
	}
	size_t len = buf_len(in);
	if (len == 0)
		return false;
	char *line = buf_data(in);
	if (s->swallowed == 0 && is_foreign(line, len)) {
		session_close(s, RESPONSE_NOT_SMTP);
		return false;
	}
	char *crlf = find_crlf(line, len);
	if (!crlf)
		return swallow_command(s, in);
	len = (size_t)(crlf - line);
	*crlf = '\0';
	/* The bytes stay where they are until something is read, which is after all is obeyed. */
	buf_consume(in, len + 2);
	s->begun_ms = 0;
	if (limit && s->errors >= limit) {
		session_close(s, RESPONSE_TOO_MANY_ERRORS);
	} else if (s->swallowed > 0) {
		s->swallowed = 0;
		s->stage = "COMMAND";
		session_refuse(s, RESPONSE_LINE_TOO_LONG, NULL);
	} else {
		obey_line(s, line, len);
	}
	return true;
}

/* RFC 4954 4: a line of base64, or "*". */
static bool read_auth(struct session *s)
{
	struct buf *in = stream_in(s->stream);
	size_t len = buf_len(in);
	if (s->worker->closing)
		session_close(s, RESPONSE_CLOSING);
	if (len == 0 || s->worker->closing)
		return false;
	char *line = buf_data(in), *crlf = find_crlf(line, len);
	if (!crlf)
		return swallow_line(s, in, COMMAND_AUTH_MAX);
	len = (size_t)(crlf - line);
	*crlf = '\0';
	buf_consume(in, len + 2);
	s->begun_ms = 0;
	if (s->swallowed > 0 || len + 2 > COMMAND_AUTH_MAX)
		auth_too_long(s);
	else
		auth_line(s, line, len);
	s->swallowed = 0;
	explicit_bzero(line, len);
	return true;
}

static bool read_content(struct session *s)
{
	assert(s->tx && s->tx->began_ms);
	struct buf *in = stream_in(s->stream);
	size_t len = buf_len(in);
	if (len == 0)
		return false;
	reception_feed(s, buf_data(in), &len);
	buf_consume(in, len);
	if (content_in_ended(&s->tx->intake.decoder))
		content_end(s);
	return true;
}

static void end_chunk(struct session *s)
{
	assert(s->state == SESSION_CHUNK && s->chunk_left == 0);
	enum response why;
	if (s->chunk_refusal != RESPONSE_OK) {
		session_refuse(s, s->chunk_refusal, NULL);
		reception_reset(s);
	} else if (s->chunk_last) {
		content_end(s);
	} else if ((why = reception_verdict(s)) != RESPONSE_OK) {
		content_refuse(s, why);
	} else {
		session_reply(s, RESPONSE_CHUNK_OK);
		session_move(s, SESSION_BDAT);
	}
}

static bool read_chunk(struct session *s)
{
	struct buf *in = stream_in(s->stream);
	size_t len = buf_len(in);
	if (len > s->chunk_left)
		len = (size_t)s->chunk_left;
	if (len > 0 && s->chunk_refusal == RESPONSE_OK)
		reception_feed(s, buf_data(in), &len);
	buf_consume(in, len);
	assert(len <= s->chunk_left);
	s->chunk_left -= len;
	if (s->chunk_left == 0)
		end_chunk(s);
	return len > 0 || s->state != SESSION_CHUNK;
}

static bool read_nothing(struct session *s)
{
	(void)s;
	return false;
}

bool session_read(struct session *s)
{
	static bool (*const read_in[])(struct session *) = {
#define S(name, text, reader, after) [SESSION_##name] = reader,
		SESSION_STATES(S)
#undef S
	};
	assert((size_t)s->state < sizeof read_in / sizeof *read_in && s->stream);
	return read_in[s->state](s);
}
