/* SPDX-License-Identifier: ISC */
#include "smtpd/milter/milter_engine.h"

#include "base/mem.h"
#include "base/words.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEAD = 4, FIELD_NAME_MAX = 255, ADDRESS_MAX = 1024 };

static const struct event_row {
	char command;
	uint32_t since;
	const char *text;
	enum milter_stage stage;
	uint32_t none, silent; /* enum milter_step */
} events[] = {
#define E(name, command, since, text, stage, none, silent)                                         \
	{command, since, text, stage, none, silent},
	MILTER_EVENTS(E)
#undef E
};

static const char answers[] = {
#define A(name, command) command,
	MILTER_ANSWERS(A)
#undef A
};

static const struct change_row {
	char command;
	uint32_t action;
	bool number;
	int texts, may_lack;
} changes[] = {
#define C(name, command, action, number, texts, may_lack)                                          \
	{command, action, number, texts, may_lack},
	MILTER_CHANGES(C)
#undef C
};

/* As Postfix sends them unless a filter chooses. */
static const char *const usual_macros[MILTER_STAGES] = {
	[MILTER_AT_CONNECT] = "j {daemon_name} {daemon_addr} {daemon_port} v _ {client_addr} "
			      "{client_name} {client_port} {client_ptr}",
	[MILTER_AT_HELO] = "{tls_version} {cipher} {cipher_bits} {cert_subject} {cert_issuer}",
	[MILTER_AT_MAIL] = "i {auth_type} {auth_authen} {auth_author} {mail_addr} {mail_host} "
			   "{mail_mailer}",
	[MILTER_AT_RCPT] = "i {rcpt_addr} {rcpt_host} {rcpt_mailer}",
	[MILTER_AT_DATA] = "i",
	[MILTER_AT_END_OF_HEADER] = "i",
	[MILTER_AT_END_OF_BODY] = "i",
};

void milter_engine_init(struct milter_engine *e)
{
	*e = (struct milter_engine){.state = MILTER_NEGOTIATING};
}

static void forget_macros(struct milter_engine *e)
{
	for (int i = 0; i < MILTER_STAGES; i++)
		mem_free(&e->macros[i]);
}

void milter_engine_fini(struct milter_engine *e)
{
	forget_macros(e);
	buf_fini(&e->in);
	buf_fini(&e->reply);
}

void milter_put_number(struct buf *to, uint32_t n, int bytes)
{
	for (int i = bytes - 1; i >= 0; i--) {
		char byte = (char)(n >> (8 * i));
		buf_append(to, &byte, 1);
	}
}

void milter_put_text(struct buf *to, const char *text)
{
	buf_append(to, text, strlen(text) + 1);
}

static void put_packet(struct buf *to, char command, const void *data, size_t len)
{
	assert(len < MILTER_PACKET_MAX);
	milter_put_number(to, (uint32_t)len + 1, HEAD);
	buf_append(to, &command, 1);
	buf_append(to, data, len);
}

static uint32_t read_number(const char *bytes)
{
	const unsigned char *b = (const unsigned char *)bytes;
	return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

void milter_engine_hello(struct milter_engine *e, struct buf *out)
{
	struct buf data = {0};
	assert(e->state == MILTER_NEGOTIATING);
	milter_put_number(&data, MILTER_VERSION, 4);
	milter_put_number(&data, MILTER_ACTIONS, 4);
	milter_put_number(&data, MILTER_STEPS, 4);
	put_packet(out, MILTER_NEGOTIATE, buf_data(&data), buf_len(&data));
	buf_fini(&data);
}

bool milter_engine_wants(const struct milter_engine *e, enum milter_event event)
{
	assert(event < MILTER_EVENT_COUNT);
	return e->version >= events[event].since && !(e->steps & events[event].none);
}

/* The next word of a list of macros: between blanks or commas. NULL: there is none. */
static char *next_macro(const char **at)
{
	*at += strspn(*at, " ,");
	size_t len = strcspn(*at, " ,");
	char *name = len ? mem_strndup(*at, len) : NULL;
	*at += len;
	return name;
}

void milter_engine_macros(struct milter_engine *e, enum milter_event event,
			  const char *(*value)(void *, const char *), void *owner, struct buf *out)
{
	enum milter_stage stage = events[event].stage;
	struct buf data = {0};
	char *name;
	if (stage == MILTER_AT_NONE)
		return;
	const char *at = e->macros[stage] ? e->macros[stage] : usual_macros[stage];
	buf_append(&data, &events[event].command, 1);
	while ((name = next_macro(&at))) {
		const char *text = value(owner, name);
		if (text && buf_len(&data) + strlen(name) + strlen(text) + 2 < MILTER_PACKET_MAX) {
			milter_put_text(&data, name);
			milter_put_text(&data, text);
		}
		free(name);
	}
	if (buf_len(&data) > 1)
		put_packet(out, MILTER_MACROS, buf_data(&data), buf_len(&data));
	buf_fini(&data);
}

bool milter_engine_ask(struct milter_engine *e, enum milter_event event, const void *data,
		       size_t len, struct buf *out)
{
	assert(e->state == MILTER_IDLE && milter_engine_wants(e, event));
	put_packet(out, events[event].command, data, len);
	if (e->steps & events[event].silent)
		return false;
	e->state = MILTER_ASKED;
	e->asked = event;
	return true;
}

void milter_engine_order(struct milter_engine *e, enum milter_order order, struct buf *out)
{
	assert(e->state == MILTER_IDLE);
	put_packet(out, (char)order, NULL, 0);
}

void milter_engine_again(struct milter_engine *e, struct buf *out)
{
	milter_engine_order(e, MILTER_QUIT_NEW_CONNECTION, out);
	/* An idle connection holds no memory of what was said last. */
	milter_engine_fini(e);
	milter_engine_init(e);
	milter_engine_hello(e, out);
}

static enum milter_says set_fault(struct milter_engine *e, const char *what)
{
	e->state = MILTER_FAULTY;
	e->fault = what;
	return MILTER_SAYS_FAULT;
}

/* The filter's words, cut into texts that each end with a NUL. */
struct cursor {
	const char *at, *end;
	bool good;
};

static const char *take_text(struct cursor *c, bool may_lack)
{
	const char *text = c->at;
	if (c->at == c->end && may_lack)
		return "";
	const char *nul = c->at < c->end ? memchr(c->at, '\0', (size_t)(c->end - c->at)) : NULL;
	c->good = c->good && nul;
	if (!nul)
		return "";
	c->at = nul + 1;
	return text;
}

static uint32_t take_number(struct cursor *c)
{
	uint32_t n = 0;
	c->good = c->good && c->end - c->at >= 4;
	if (c->good)
		n = read_number(c->at);
	c->at = c->good ? c->at + 4 : c->end;
	return n;
}

/* Lists of macros may stand behind the three numbers. */
static enum milter_says take_negotiation(struct milter_engine *e, struct cursor *c)
{
	e->version = take_number(c);
	e->actions = take_number(c);
	e->steps = take_number(c);
	while (c->good && c->at < c->end) {
		uint32_t stage = take_number(c);
		const char *list = take_text(c, false);
		if (!c->good || stage >= MILTER_STAGES)
			return set_fault(e, "its list of macros is none");
		free(e->macros[stage]);
		e->macros[stage] = mem_strdup(list);
	}
	if (!c->good)
		return set_fault(e, "its negotiation is cut short");
	if (e->version < MILTER_VERSION_LEAST || e->version > MILTER_VERSION)
		return set_fault(e, "it speaks another version of the protocol");
	/* An action that was not offered does not hold, whatever the filter says. */
	e->actions &= MILTER_ACTIONS;
	e->steps &= MILTER_STEPS;
	e->state = MILTER_IDLE;
	return MILTER_SAYS_READY;
}

static bool is_clean(const char *text, size_t most)
{
	size_t len = 0;
	for (; text[len]; len++)
		if ((unsigned char)text[len] < ' ' || text[len] == 127)
			return false;
	return len <= most;
}

static bool good_field_name(const char *name)
{
	size_t len = 0;
	for (; name[len]; len++)
		if (name[len] <= ' ' || name[len] >= 127 || name[len] == ':')
			return false;
	return len > 0 && len <= FIELD_NAME_MAX;
}

/* A line may end where the next begins with a blank. Lines of nothing but blanks, which a sender may have folded a field
 * into, and an end behind the last line are left out by whoever makes the field. */
static bool good_field_value(const char *value)
{
	for (const char *c = value; *c; c++) {
		if (*c == '\r' && c[1] == '\n')
			continue;
		if (*c == '\r')
			return false;
		if (*c != '\n')
			continue;
		if (!strchr(" \t\r\n", c[1])) /* which finds the end of the text, too */
			return false;
	}
	return true;
}

static const char *fault_of_change(const struct milter_answer *a)
{
	switch (a->change) {
	case MILTER_CHANGE_TO_HEADER_ADD:
	case MILTER_CHANGE_TO_HEADER_INSERT:
	case MILTER_CHANGE_TO_HEADER_CHANGE:
		if (!good_field_name(a->text[0]))
			return "the name of a header field is none";
		return good_field_value(a->text[1]) ? NULL : "a header field would end early";
	case MILTER_CHANGE_TO_BODY:
		return memchr(a->body, '\0', a->body_len) ? "a body with a NUL" : NULL;
	default:
		return is_clean(a->text[0], ADDRESS_MAX) && is_clean(a->text[1], ADDRESS_MAX)
			       ? NULL
			       : "an address or a reason that is none";
	}
}

static enum milter_says take_change(struct milter_engine *e, enum milter_change_kind kind,
				    struct cursor *c, struct milter_answer *a)
{
	const struct change_row *row = &changes[kind];
	if (e->asked != MILTER_END_OF_BODY)
		return set_fault(e, "it changes a message that it has not seen whole");
	if (!(e->actions & row->action))
		return set_fault(e, "it changes what it has not asked to change");
	a->change = kind;
	a->leading_space = e->steps & MILTER_LEADING_SPACE;
	if (row->number)
		a->index = take_number(c);
	for (int i = 0; i < row->texts; i++)
		a->text[i] = take_text(c, i >= row->texts - row->may_lack);
	if (row->texts == 0) {
		a->body = c->at;
		a->body_len = (size_t)(c->end - c->at);
		c->at = c->end;
	}
	if (!c->good || c->at != c->end)
		return set_fault(e, "a change is cut short, or too long");
	const char *wrong = fault_of_change(a);
	return wrong ? set_fault(e, wrong) : MILTER_SAYS_CHANGE;
}

/* RFC 2034 4 wants an enhanced code in each line. Where a filter has none, that of its first line stands, or one that says
 * no more than the class. */
static void put_enhanced_code(struct milter_engine *e, const char *text)
{
	enum { HEAD_OF_LINE = 4, CODE_MAX = 12 }; /* "550 " */
	const char *first = buf_cstr(&e->reply);
	char class[] = {first[0], '\0'}, code[CODE_MAX];
	if (words_dsn(text, strcspn(text, " \r\n"), class))
		return;
	if (buf_len(&e->reply) > HEAD_OF_LINE)
		snprintf(code, sizeof code, "%.*s", (int)strcspn(first + HEAD_OF_LINE, " \r"),
			 first + HEAD_OF_LINE);
	else
		snprintf(code, sizeof code, "%s.0.0", class);
	buf_printf(&e->reply, "%s ", code);
}

/* "550 5.7.1 text", or "550-5.7.1 text" and further lines. Returns where the next line begins; NULL: that
 * is no line of a reply. */
static const char *take_reply_line(struct milter_engine *e, const char *line, const char *code)
{
	size_t len = strcspn(line, "\r\n");
	const char *next = line + len + strspn(line + len, "\r\n");
	if (len < 3 || len > MILTER_REPLY_LINE_MAX || strncmp(line, code, 3) != 0)
		return NULL;
	if (len > 3 && line[3] != (*next ? '-' : ' '))
		return NULL;
	buf_append(&e->reply, line, 3);
	buf_puts(&e->reply, *next ? "-" : " ");
	put_enhanced_code(e, len > 3 ? line + 4 : "");
	for (size_t i = 4; i < len; i++) {
		unsigned char byte = (unsigned char)line[i];
		/* Filters write %% for a percent sign. */
		if (byte == '%' && i + 1 < len && line[i + 1] == '%')
			i++;
		char shown = byte < ' ' || byte > '~' ? '?' : (char)byte;
		buf_append(&e->reply, &shown, 1);
	}
	buf_puts(&e->reply, "\r\n");
	return next;
}

/* An enhanced code must be of the same class (RFC 2034 4). */
static bool good_code(const char *reply)
{
	if ((reply[0] != '4' && reply[0] != '5') || !isdigit((unsigned char)reply[1]) ||
	    !isdigit((unsigned char)reply[2]))
		return false;
	bool enhanced = reply[3] && isdigit((unsigned char)reply[4]) && reply[5] == '.';
	return !enhanced || reply[4] == reply[0];
}

static bool take_reply(struct milter_engine *e, const char *text)
{
	buf_clear(&e->reply);
	if (!good_code(text))
		return false;
	const char *line = text;
	for (int n = 0; line && *line; n++)
		line = n < MILTER_REPLY_LINES_MAX ? take_reply_line(e, line, text) : NULL;
	return line != NULL;
}

static bool has_message(enum milter_event event)
{
	return event != MILTER_CONNECT && event != MILTER_HELO && event != MILTER_UNKNOWN;
}

static enum milter_says take_answer(struct milter_engine *e, enum milter_answer_kind kind,
				    struct cursor *c, struct milter_answer *a)
{
	a->kind = kind;
	if (kind == MILTER_ANSWER_REPLY) {
		const char *text = take_text(c, false);
		if (!c->good || !take_reply(e, text))
			return set_fault(e, "its reply for the client is none");
		a->reply = buf_cstr(&e->reply);
	}
	if (c->at != c->end)
		return set_fault(e, "an answer is too long");
	if (kind == MILTER_ANSWER_PROGRESS)
		return MILTER_SAYS_WAIT;
	if (kind == MILTER_ANSWER_SKIP && (e->asked != MILTER_BODY || !(e->steps & MILTER_SKIP)))
		return set_fault(e, "it skips what is no body");
	if (kind == MILTER_ANSWER_DISCARD && !has_message(e->asked))
		return set_fault(e, "it discards, and there is no message");
	e->state = MILTER_IDLE;
	return MILTER_SAYS_ANSWER;
}

static enum milter_says obey_packet(struct milter_engine *e, struct milter_answer *a)
{
	const char *bytes = buf_data(&e->in) + HEAD;
	struct cursor c = {bytes + 1, bytes - HEAD + buf_len(&e->in), true};
	*a = (struct milter_answer){.text = {"", ""}};
	if (e->state == MILTER_NEGOTIATING)
		return *bytes == MILTER_NEGOTIATE ? take_negotiation(e, &c)
						  : set_fault(e, "that is no filter");
	if (e->state != MILTER_ASKED)
		return set_fault(e, "it speaks without being asked");
	for (int i = 0; i < MILTER_ANSWER_COUNT; i++)
		if (answers[i] == *bytes)
			return take_answer(e, (enum milter_answer_kind)i, &c, a);
	for (int i = 0; i < MILTER_CHANGE_COUNT; i++)
		if (changes[i].command == *bytes)
			return take_change(e, (enum milter_change_kind)i, &c, a);
	return set_fault(e, "it says what is no part of the protocol");
}

static void fill_packet(struct milter_engine *e, struct buf *from, size_t want)
{
	size_t have = buf_len(&e->in), len = buf_len(from);
	if (have >= want || len == 0)
		return;
	len = len < want - have ? len : want - have;
	buf_append(&e->in, buf_data(from), len);
	buf_consume(from, len);
}

/* A piece of a longer packet stands there as a packet of its own. */
static void begin_body_piece(struct milter_engine *e)
{
	uint32_t len = e->body_left < MILTER_BODY_CHUNK ? e->body_left : MILTER_BODY_CHUNK;
	assert(len > 0 && buf_len(&e->in) == 0);
	milter_put_number(&e->in, len + 1, HEAD);
	buf_append(&e->in, &changes[MILTER_CHANGE_TO_BODY].command, 1);
	e->body_left -= len;
}

static bool may_replace_body(const struct milter_engine *e)
{
	return e->state == MILTER_ASKED && e->asked == MILTER_END_OF_BODY &&
	       (e->actions & changes[MILTER_CHANGE_TO_BODY].action);
}

/* libmilter cuts a body into pieces, but rspamd sends the whole of it at once, and Postfix takes that. */
static void cut_long_packet(struct milter_engine *e)
{
	uint32_t len = read_number(buf_data(&e->in));
	if (len <= MILTER_PACKET_MAX || !may_replace_body(e) ||
	    buf_data(&e->in)[HEAD] != changes[MILTER_CHANGE_TO_BODY].command)
		return;
	e->body_left = len - 1;
	buf_clear(&e->in);
	begin_body_piece(e);
}

enum milter_says milter_engine_take(struct milter_engine *e, struct buf *from,
				    struct milter_answer *a)
{
	if (e->state == MILTER_FAULTY)
		return MILTER_SAYS_FAULT;
	buf_consume(&e->in, e->taken);
	e->taken = 0;
	if (e->body_left > 0 && buf_len(&e->in) == 0)
		begin_body_piece(e);
	fill_packet(e, from, HEAD + 1);
	if (buf_len(&e->in) <= HEAD)
		return MILTER_SAYS_NOTHING;
	cut_long_packet(e);
	uint32_t len = read_number(buf_data(&e->in));
	if (len == 0 || len > MILTER_PACKET_MAX)
		return set_fault(e, "a length that no packet has");
	fill_packet(e, from, HEAD + len);
	if (buf_len(&e->in) < HEAD + len)
		return MILTER_SAYS_NOTHING;
	e->taken = HEAD + len;
	enum milter_says says = obey_packet(e, a);
	bool ends = says == MILTER_SAYS_ANSWER || says == MILTER_SAYS_READY;
	if (ends && buf_len(from) > 0)
		return set_fault(e, "it speaks without being asked");
	return says;
}
