/* SPDX-License-Identifier: ISC */
#include "base/log_line.h"

#include "base/log_stamp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *skip_blanks(const char *s, const char *end)
{
	while (s < end && (*s == ' ' || *s == '\t'))
		s++;
	return s;
}

static const char *find_or_end(const char *s, const char *end, char wanted)
{
	const char *at = memchr(s, wanted, (size_t)(end - s));
	return at ? at : end;
}

/* The quote that ends what begins at s, behind its own; end: there is none. */
static const char *closing_quote(const char *s, const char *end)
{
	while ((s = find_or_end(s, end, '"')) < end) {
		size_t before = 0;
		while (s[-1 - (ptrdiff_t)before] == '\\')
			before++;
		if (before % 2 == 0)
			return s;
		s++;
	}
	return end;
}

/* A string, or a word up to one of two bytes. Returns what follows it; NULL: the string has no end. */
static const char *read_value(const char *s, const char *end, const char stops[2],
			      enum log_quoting quoted, struct log_field *f)
{
	const char *stop;
	f->quoting = s < end && *s == '"' ? quoted : LOG_PLAIN;
	if (f->quoting != LOG_PLAIN) {
		stop = closing_quote(++s, end);
		f->text = s;
		f->len = (size_t)(stop - s);
		if (!memchr(s, '\\', f->len))
			f->quoting = LOG_PLAIN;
		return stop < end ? stop + 1 : NULL;
	}
	for (stop = s; stop < end && *stop != stops[0] && *stop != stops[1];)
		stop++;
	f->text = s;
	f->len = (size_t)(stop - s);
	return stop;
}

static bool read_pairs(struct log_line *l, const char *s, const char *end)
{
	while ((s = skip_blanks(s, end)) < end) {
		struct log_field f = {.key = s};
		const char *sign = find_or_end(s, end, '=');
		if (sign == end)
			return false;
		f.key_len = (size_t)(sign - s);
		s = read_value(sign + 1, end, "  ", LOG_QUOTED_TEXT, &f);
		if (!s)
			return false;
		log_line_add(l, f.key, f.key_len, f.text, f.len, f.quoting);
	}
	return true;
}

static bool is_level(const char *word, size_t len)
{
	for (int i = LOG_LEVEL_DEBUG; i < LOG_LEVEL_NONE; i++) {
		const char *name = log_level_name((enum log_level)i);
		if (strlen(name) == len && memcmp(name, word, len) == 0)
			return true;
	}
	return false;
}

/* Level, event, pairs. */
static bool read_text(struct log_line *l, const char *s, const char *end)
{
	const char *blank = find_or_end(s, end, ' ');
	if (blank == end || !is_level(s, (size_t)(blank - s)))
		return false;
	l->event = blank + 1;
	s = find_or_end(l->event, end, ' ');
	l->event_len = (size_t)(s - l->event);
	return l->event_len > 0 && read_pairs(l, s, end);
}

static bool take_json(struct log_line *l, const struct log_field *f)
{
	if (f->key_len == 5 && memcmp(f->key, "event", 5) == 0) {
		l->event = f->text;
		l->event_len = f->len;
	} else if (f->key_len == 4 && memcmp(f->key, "time", 4) == 0) {
		return log_stamp_iso(f->text, f->len, &l->wall_ms) == f->len;
	} else {
		log_line_add(l, f->key, f->key_len, f->text, f->len, f->quoting);
	}
	return true;
}

static bool read_json(struct log_line *l, const char *s, const char *end)
{
	do {
		struct log_field name, f;
		s = skip_blanks(s + 1, end);
		s = read_value(s, end, ":,", LOG_QUOTED_JSON, &name);
		s = s ? skip_blanks(s, end) : end;
		if (s >= end || *s != ':')
			return false;
		s = read_value(skip_blanks(s + 1, end), end, ",}", LOG_QUOTED_JSON, &f);
		f.key = name.text;
		f.key_len = name.len;
		if (!s || !take_json(l, &f))
			return false;
		s = skip_blanks(s, end);
	} while (s < end && *s == ',');
	return s < end && *s == '}' && l->event;
}

/* "HOST sluice[PID]: ", or "HOST sluice/PROGRAM[PID]: ". */
static bool read_tagged(struct log_line *l, const char *s, const char *end)
{
	const char *tag = find_or_end(s, end, ' ') + 1;
	if (end - tag < 8 || memcmp(tag, "sluice", 6) != 0)
		return false;
	const char *program = tag[6] == '/' ? tag + 7 : NULL;
	const char *bracket = find_or_end(tag, end, '['), *colon = find_or_end(bracket, end, ':');
	if (end - colon < 3 || colon[-1] != ']')
		return false;
	s = colon + 2;
	if (program)
		return log_line_postfix(l, program, (size_t)(bracket - program), s, end);
	return *s == '{' ? read_json(l, s, end) : read_text(l, s, end);
}

static bool read_form(struct log_line *l, const char *text, const char *end, int64_t written_ms)
{
	l->n = 0;
	l->event = NULL;
	while (end > text && (end[-1] == '\r' || end[-1] == ' '))
		end--;
	text = skip_blanks(text, end);
	if (text < end && *text == '{')
		return read_json(l, text, end);
	size_t stamp = log_stamp_read(text, (size_t)(end - text), written_ms, &l->wall_ms);
	text = skip_blanks(text + stamp, end);
	return stamp > 0 && text < end && (read_text(l, text, end) || read_tagged(l, text, end));
}

/* Readers print names as they are. */
static bool is_name(const char *name, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (name[i] <= ' ' || name[i] > '~' || name[i] == '"' || name[i] == '\\')
			return false;
	return len > 0;
}

/* Another program's line in a file of syslogd's has any. */
static bool has_names(const struct log_line *l)
{
	for (int i = 0; i < l->n; i++)
		if (!is_name(l->field[i].key, l->field[i].key_len))
			return false;
	return is_name(l->event, l->event_len);
}

bool log_line_read(struct log_line *l, const char *text, size_t len, int64_t written_ms)
{
	return read_form(l, text, text + len, written_ms) && has_names(l);
}

bool log_line_is(const struct log_line *l, const char *event)
{
	return strlen(event) == l->event_len && memcmp(event, l->event, l->event_len) == 0;
}

const struct log_field *log_line_find(const struct log_line *l, const char *key)
{
	size_t len = strlen(key);
	for (int i = 0; i < l->n; i++)
		if (l->field[i].key_len == len && memcmp(l->field[i].key, key, len) == 0)
			return &l->field[i];
	return NULL;
}

enum { NO_CHARACTER = 0xfffd, BEYOND = 0x10000 };

static void put_character(struct buf *to, unsigned c)
{
	char utf8[4] = {(char)(0xf0 | c >> 18), (char)(0x80 | (c >> 12 & 0x3f)),
			(char)(0x80 | (c >> 6 & 0x3f)), (char)(0x80 | (c & 0x3f))};
	size_t len = c < 0x80 ? 1 : c < 0x800 ? 2 : c < BEYOND ? 3 : 4;
	if (len == 1)
		utf8[3] = (char)c;
	else if (len == 2)
		utf8[2] = (char)(0xc0 | c >> 6);
	else if (len == 3)
		utf8[1] = (char)(0xe0 | c >> 12);
	buf_append(to, utf8 + sizeof utf8 - len, len);
}

/* False: s does not begin with so many digits. */
static bool read_digits(const char *s, size_t len, size_t digits, unsigned *value)
{
	char number[5] = "";
	if (len < digits)
		return false;
	memcpy(number, s, digits);
	*value = (unsigned)strtoul(number, NULL, 16);
	return strspn(number, "0123456789abcdefABCDEF") == digits;
}

/* Put what stands behind "\u": a character beyond those of four digits is two of them. Returns how many bytes that was. */
static size_t put_escaped_character(struct buf *to, const char *s, size_t len)
{
	unsigned c, second;
	size_t read = 4;
	if (!read_digits(s, len, 4, &c))
		return read;
	bool pair = c >> 10 == 0xd800 >> 10 && len >= 10 && s[4] == '\\' && s[5] == 'u' &&
		    read_digits(s + 6, len - 6, 4, &second) && second >> 10 == 0xdc00 >> 10;
	if (pair) {
		c = BEYOND + ((c & 0x3ff) << 10 | (second & 0x3ff));
		read = 10;
	} else if (c >> 11 == 0xd800 >> 11) {
		c = NO_CHARACTER;
	}
	put_character(to, c);
	return read;
}

/* Put the character that is written behind a backslash. Returns how many bytes that was. */
static size_t put_escaped(struct buf *to, const char *s, size_t len)
{
	static const char letters[] = "n\nr\rt\t";
	const char *letter = strchr("nrt", *s);
	unsigned value;
	if (*s == 'u' && len > 4)
		return 1 + put_escaped_character(to, s + 1, len - 1);
	if (*s == 'x' && len > 2) {
		if (read_digits(s + 1, len - 1, 2, &value))
			buf_append(to, &(char){(char)value}, 1);
		return 3;
	}
	buf_append(to, letter && *s ? strchr(letters, *s) + 1 : s, 1);
	return 1;
}

void log_field_put(const struct log_field *f, struct buf *to)
{
	for (size_t i = 0; i < f->len;) {
		const char *s = f->text + i;
		size_t plain = f->len - i;
		const char *escape = f->quoting == LOG_PLAIN ? NULL : memchr(s, '\\', plain);
		if (escape)
			plain = (size_t)(escape - s);
		buf_append(to, s, plain);
		i += plain + 1;
		if (i < f->len)
			i += put_escaped(to, f->text + i, f->len - i);
	}
}
