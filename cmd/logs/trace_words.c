/* SPDX-License-Identifier: ISC */
#include "cmd/logs/trace_words.h"

#include "base/utf8.h"

#include <string.h>

/* A part in brackets is told when each of its keys has a value: {KEY}. The first row that has the
 * event, and the key, is taken. */
static const struct words {
	const char *event, *key, *text;
} rows[] = {
	{"queued", "report_of", "report on message {report_of} made, as message {id}"},
	{"queued", "archive_of",
	 "copy of message {archive_of} made for the archive, as message {id}"},
	{"queued", "refilter_of", "message {refilter_of} has passed the filters again, as {id}"},
	{"queued", "via", "taken over[ from {via}][, user {user}][, {size} bytes]"},
	{"queued", "client",
	 "accepted from {client}[, login {user}][, {size} bytes][, recipients: {nrcpt}]"
	 "[, signed by {signed}][, to be sent at {not_before}][, on hold: {held}]"},
	{"queued", "message_id", ""},
	{"queued", NULL, "in the queue[, {size} bytes][, recipients: {nrcpt}]"},
	{"sent", NULL, "delivered to <{to}>[ by {relay}][ after {delay} s][: {reply}]"},
	{"deferred", NULL, "put off for <{to}>[ at {relay}][, try {tries}][: {reply}]"},
	{"bounced", NULL, "failed for <{to}>[ at {relay}][: {reply}]"},
	{"in_doubt", NULL,
	 "sent to <{to}>[ at {relay}], but no reply was seen: it will be sent again"},
	{"done", NULL, "done: nobody is left to deliver it to"},
	{"discarded", NULL, "dropped[ for <{to}>][: {reason}]"},
	{"discard", NULL, "accepted and thrown away[ for <{to}>][: {reason}]"},
	{"held", NULL, "put on hold"},
	{"reject", NULL,
	 "refused[ at {stage}][ to {client}]: {code} {dsn} {reason}[, from <{from}>][, to <{to}>]"},
	{"connect", NULL, "{client} connects"},
	{"disconnect", NULL, ""},
	{"auth", NULL, "login {login}[ by {mechanism}]: {result}"},
	{"tls", NULL, "TLS[ {version}][ with {cipher}][: {reason}]"},
	{"filter", NULL, "filter[ {milter}]: {action}[ ({reason})]"},
	{"limit", NULL, "above a limit[, {limit}]: {action}"},
	{"recovered", NULL, "found in the queue after a start[: {reason}]"},
	{"adopted", NULL, "taken over from node {node}"},
};

/* The relay says none where there is no host. */
static const struct log_field *value_of(const struct log_line *l, const char *key, size_t len)
{
	char name[32] = "";
	memcpy(name, key, len < sizeof name ? len : sizeof name - 1);
	const struct log_field *f = log_line_find(l, name);
	bool none =
		f && strcmp(name, "relay") == 0 && f->len == 4 && memcmp(f->text, "none", 4) == 0;
	return none ? NULL : f;
}

void trace_words_value(const struct log_field *f, struct buf *to)
{
	struct buf raw = {0};
	log_field_put(f, &raw);
	utf8_put(to, buf_cstr(&raw));
	buf_fini(&raw);
}

/* Up to the end, or to the bracket that closes. False: a value was missing. */
static bool put_part(const struct log_line *l, const char *s, const char *end, struct buf *to)
{
	bool whole = true;
	while (s < end) {
		size_t plain = strcspn(s, "{");
		plain = plain < (size_t)(end - s) ? plain : (size_t)(end - s);
		buf_append(to, s, plain);
		s += plain;
		if (s == end)
			break;
		size_t len = strcspn(++s, "}");
		const struct log_field *f = value_of(l, s, len);
		if (f)
			trace_words_value(f, to);
		whole = whole && f;
		s += len + 1;
	}
	return whole;
}

static void put_words(const struct log_line *l, const char *s, struct buf *to)
{
	while (*s) {
		bool optional = *s == '[';
		size_t before = buf_len(to), len = strcspn(s += optional, optional ? "]" : "[");
		if (!put_part(l, s, s + len, to) && optional)
			buf_shorten(to, buf_len(to) - before);
		s += len + optional;
	}
}

static void put_all(const struct log_line *l, struct buf *to)
{
	buf_append(to, l->event, l->event_len);
	for (int i = 0; i < l->n; i++) {
		const struct log_field *f = &l->field[i];
		if (f->key_len == 2 && memcmp(f->key, "id", 2) == 0)
			continue;
		buf_printf(to, " %.*s=", (int)f->key_len, f->key);
		trace_words_value(f, to);
	}
}

bool trace_words(const struct log_line *l, struct buf *to)
{
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		if (!log_line_is(l, rows[i].event) ||
		    (rows[i].key && !log_line_find(l, rows[i].key)))
			continue;
		put_words(l, rows[i].text, to);
		return *rows[i].text;
	}
	put_all(l, to);
	return true;
}
