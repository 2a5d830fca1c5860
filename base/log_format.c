/* SPDX-License-Identifier: ISC */
#include "base/log_format.h"

#include "base/utf8.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { TIME_SIZE = 32, LEVEL_SIZE = 8 }; /* bytes, with what stands behind */

static const char *const level_names[] = {"debug", "info", "warning", "error"};

const char *log_level_name(enum log_level level)
{
	assert((size_t)level < sizeof level_names / sizeof *level_names);
	return level_names[level];
}

const char *log_value(const struct log_record *r, const char *key, const char *without)
{
	for (int i = 0; i < r->npair; i++)
		if (strcmp(r->pair[i].key, key) == 0)
			return r->pair[i].value;
	return without;
}

static char *put_bytes(char *to, const char *what, size_t len)
{
	return (char *)memcpy(to, what, len) + len;
}

/* "2026-01-02T03:04:05.678Z". The C library takes a lock for the calendar: once a second is
 * enough. */
static char *write_time(char *to, int64_t wall_ms)
{
	static _Thread_local char text[TIME_SIZE];
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
	to = put_bytes(to, text, strlen(text));
	return put_bytes(to, rest, sizeof rest);
}

void log_put_time(struct buf *to, int64_t wall_ms)
{
	char *at = buf_reserve(to, TIME_SIZE);
	buf_commit(to, (size_t)(write_time(at, wall_ms) - at));
}

void log_json_time(struct buf *to, const char *name, int64_t wall_ms)
{
	buf_printf(to, "\"%s\":\"", name);
	log_put_time(to, wall_ms);
	buf_puts(to, "\",");
}

/* Needs no quotes: all of ASCII that is seen, but for these. */
static bool is_bare(unsigned char c)
{
	return c > ' ' && c < 0x7f && c != '"' && c != '=' && c != '\\';
}

/* A word whose eight bytes are all this one. */
static inline uint64_t repeat_byte(unsigned char c)
{
	return UINT64_C(0x0101010101010101) * c;
}

/* Has a bit for one that is 0 (and maybe for others, then). */
static inline uint64_t zeros_of(uint64_t word)
{
	return (word - repeat_byte(1)) & ~word & repeat_byte(0x80);
}

/* 0: eight bytes of which each is bare. */
static inline uint64_t odd_of_eight(uint64_t word)
{
	uint64_t low = (word - repeat_byte(' ' + 1)) & ~word & repeat_byte(0x80);
	uint64_t high = (word | (word + repeat_byte(1))) & repeat_byte(0x80);
	return low | high | zeros_of(word ^ repeat_byte('"')) | zeros_of(word ^ repeat_byte('=')) |
	       zeros_of(word ^ repeat_byte('\\'));
}

/* Eight bytes, or fewer and something bare behind them. */
static inline uint64_t load_word(const char *s, size_t len)
{
	uint64_t word = repeat_byte('a');
	memcpy(&word, s, len);
	return word;
}

/* A line is long: to look at one byte after the other took half of what it costs. */
static bool all_bare(const char *s, size_t len)
{
	size_t at = 0;
	uint64_t odd = 0;
	for (; at + 8 < len; at += 8)
		odd |= odd_of_eight(load_word(s + at, 8));
	odd |= odd_of_eight(at > 0 ? load_word(s + len - 8, 8) : load_word(s, len));
	return !odd;
}

static bool is_plain(const char *value, size_t length)
{
	if (length == 0 || all_bare(value, length))
		return length > 0;
	for (size_t len; *value; value += len) {
		len = is_bare((unsigned char)*value) ? 1 : utf8_shown(value);
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

static char *put_escape(char *to, char c)
{
	static const char digits[] = "0123456789ABCDEF";
	const char *escape = strchr("\"\"\\\\\nn\rr\tt", c);
	*to++ = '\\';
	*to++ = escape ? escape[1] : 'x';
	if (escape)
		return to;
	*to++ = digits[(unsigned char)c >> 4];
	*to++ = digits[c & 15];
	return to;
}

static char *put_escaped(char *to, const char *value)
{
	*to++ = '"';
	while (*value) {
		size_t len = quotable_length(value);
		if (len == 0 && *value != '"' && *value != '\\')
			len = utf8_shown(value);
		to = len > 0 ? put_bytes(to, value, len) : put_escape(to, *value);
		value += len ? len : 1;
	}
	*to++ = '"';
	return to;
}

/* Bytes that the pairs take at most, whatever must be escaped: a line has twenty of them, and room is made once. */
static size_t measure_pairs(const struct log_record *r)
{
	enum { ESCAPE = 4, MARKS = 4 }; /* bytes that one becomes; space, '=' and quotes */
	size_t most = 0;
	for (int i = 0; i < r->npair; i++)
		most += strlen(r->pair[i].key) + ESCAPE * r->pair[i].len + MARKS;
	return most;
}

static char *put_pair(char *to, const struct log_pair *p)
{
	*to++ = ' ';
	to = put_bytes(to, p->key, strlen(p->key));
	*to++ = '=';
	return is_plain(p->value, p->len) ? put_bytes(to, p->value, p->len)
					  : put_escaped(to, p->value);
}

void log_format_text(struct buf *to, const struct log_record *r)
{
	size_t most = TIME_SIZE + LEVEL_SIZE + strlen(r->event) + measure_pairs(r) + 1;
	char *from = buf_reserve(to, most), *at = from;
	if (!r->syslog) {
		at = write_time(at, r->wall_ms);
		*at++ = ' ';
	}
	at = put_bytes(at, log_level_name(r->level), strlen(log_level_name(r->level)));
	*at++ = ' ';
	at = put_bytes(at, r->event, strlen(r->event));
	for (int i = 0; i < r->npair; i++)
		at = put_pair(at, &r->pair[i]);
	*at++ = '\n';
	assert((size_t)(at - from) <= most);
	buf_commit(to, (size_t)(at - from));
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
