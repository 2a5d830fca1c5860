/* SPDX-License-Identifier: ISC */
#include "base/log_format.h"

#include "base/utf8.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static const char *const level_names[] = {"debug", "info", "warning", "error"};

const char *log_level_name(enum log_level level)
{
	return level_names[level];
}

const char *log_value(const struct log_record *r, const char *key, const char *without)
{
	for (int i = 0; i < r->npair; i++)
		if (strcmp(r->pair[i].key, key) == 0)
			return r->pair[i].value;
	return without;
}

void log_begin(struct buf *to, const struct log_record *r)
{
	if (r->syslog)
		buf_printf(to, "%d", (int)r->level);
}

/* "2026-01-02T03:04:05.678Z". The C library takes a lock for the calendar: once a second is
 * enough. */
void log_put_time(struct buf *to, int64_t wall_ms)
{
	static _Thread_local char text[32];
	static _Thread_local time_t of = -1;
	time_t now = (time_t)(wall_ms / 1000);
	if (now != of) {
		struct tm tm;
		gmtime_r(&now, &tm);
		strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
		of = now;
	}
	int ms = (int)(wall_ms % 1000);
	char rest[] = {'.', (char)('0' + ms / 100), (char)('0' + ms / 10 % 10),
		       (char)('0' + ms % 10), 'Z'};
	buf_puts(to, text);
	buf_append(to, rest, sizeof rest);
}

/* Bytes of the character that can stand in a line as it is, or 0. */
static size_t printable(const char *s)
{
	size_t len = utf8_length(s);
	if (len == 1)
		return *s >= ' ' && *s != 0x7f;
	return len == 2 && (unsigned char)s[0] == 0xc2 && (unsigned char)s[1] < 0xa0 ? 0 : len;
}

/* Needs no quotes. */
static bool is_bare(unsigned char c)
{
	return c > ' ' && c < 0x7f && c != '"' && c != '=' && c != '\\';
}

static bool is_plain(const char *value)
{
	if (!*value)
		return false;
	for (size_t len; *value; value += len) {
		len = is_bare((unsigned char)*value) ? 1 : printable(value);
		if (len == 0 || (len == 1 && !is_bare((unsigned char)*value)))
			return false;
	}
	return true;
}

/* Bytes of ASCII at its beginning that stand in quotes as they are. */
static size_t quotable_length(const char *s)
{
	size_t n = 0;
	while (s[n] >= ' ' && s[n] < 0x7f && s[n] != '"' && s[n] != '\\')
		n++;
	return n;
}

static void append_escape(struct buf *to, char c)
{
	const char *escape = strchr("\"\"\\\\\nn\rr\tt", c);
	if (escape)
		buf_printf(to, "\\%c", escape[1]);
	else
		buf_printf(to, "\\x%02X", (unsigned char)c);
}

static void append_escaped(struct buf *to, const char *value)
{
	buf_puts(to, "\"");
	while (*value) {
		size_t len = quotable_length(value);
		if (len == 0 && *value != '"' && *value != '\\')
			len = printable(value);
		if (len > 0)
			buf_append(to, value, len);
		else
			append_escape(to, *value);
		value += len ? len : 1;
	}
	buf_puts(to, "\"");
}

/* A line has twenty of these: room is made once for each. */
static void append_pair(struct buf *to, const struct log_pair *p)
{
	size_t key = strlen(p->key);
	bool plain = is_plain(p->value);
	size_t value = plain ? strlen(p->value) : 0;
	char *at = buf_reserve(to, key + value + 2);
	*at++ = ' ';
	memcpy(at, p->key, key);
	at[key] = '=';
	memcpy(at + key + 1, p->value, value);
	buf_commit(to, key + value + 2);
	if (!plain)
		append_escaped(to, p->value);
}

void log_format_text(struct buf *to, const struct log_record *r)
{
	log_begin(to, r);
	if (!r->syslog) {
		log_put_time(to, r->wall_ms);
		buf_puts(to, " ");
	}
	buf_puts(to, log_level_name(r->level));
	buf_puts(to, " ");
	buf_puts(to, r->event);
	for (int i = 0; i < r->npair; i++)
		append_pair(to, &r->pair[i]);
	buf_puts(to, "\n");
}

void log_json_string(struct buf *to, const char *text)
{
	buf_puts(to, "\"");
	while (*text) {
		size_t len = utf8_length(text);
		unsigned char c = (unsigned char)*text;
		if (len == 0)
			buf_puts(to, "\xef\xbf\xbd");
		else if (c == '"' || c == '\\')
			buf_printf(to, "\\%c", c);
		else if (c == '\n')
			buf_puts(to, "\\n");
		else if (c < 0x20 || c == 0x7f)
			buf_printf(to, "\\u%04x", c);
		else
			buf_append(to, text, len);
		text += len ? len : 1;
	}
	buf_puts(to, "\"");
}

void log_format_json(struct buf *to, const struct log_record *r)
{
	log_begin(to, r);
	buf_puts(to, "{\"time\":\"");
	log_put_time(to, r->wall_ms);
	buf_printf(to, "\",\"level\":\"%s\",\"event\":", log_level_name(r->level));
	log_json_string(to, r->event);
	for (int i = 0; i < r->npair; i++) {
		const struct log_pair *p = &r->pair[i];
		buf_puts(to, ",");
		log_json_string(to, p->key);
		buf_puts(to, ":");
		if (p->number)
			buf_puts(to, p->value);
		else
			log_json_string(to, p->value);
	}
	buf_puts(to, "}\n");
}
