/* SPDX-License-Identifier: ISC */
#include "base/log_stamp.h"

#include <stdbool.h>
#include <string.h>
#include <time.h>

enum { DAY_MS = 24 * 3600 * 1000 };

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The text has the form that is shown: a digit for each 0, a letter for each a, any for _. */
static bool has_form(const char *text, size_t len, const char *form)
{
	for (size_t i = 0; form[i]; i++) {
		if (i >= len)
			return false;
		char c = text[i], f = form[i];
		bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
		bool fits = f == '0' ? is_digit(c) : f == 'a' ? letter : f == '_' || c == f;
		if (!fits)
			return false;
	}
	return true;
}

static int read_digits(const char *s, int digits)
{
	int n = 0;
	while (digits-- > 0)
		n = n * 10 + (*s++ - '0');
	return n;
}

/* Days since 1970 of a date of the Gregorian calendar; years begin in March, so that the leap day is the
 * last of one. */
static int64_t days_of(int year, int month, int day)
{
	int64_t y = month > 2 ? year : year - 1;
	int64_t of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
	return 365 * y + y / 4 - y / 100 + y / 400 + of_year - 719468;
}

static size_t read_fraction(const char *text, size_t len, int64_t *ms)
{
	size_t at = 0;
	if (len == 0 || text[0] != '.')
		return 0;
	for (int64_t unit = 100; ++at < len && is_digit(text[at]); unit /= 10)
		*ms += unit * (text[at] - '0');
	return at;
}

/* "Z" or "+01:00". 0: neither. */
static size_t read_zone(const char *text, size_t len, int64_t *ms)
{
	if (len > 0 && text[0] == 'Z')
		return 1;
	if (!has_form(text, len, "_00:00") || !strchr("+-", text[0]))
		return 0;
	int64_t ahead = (read_digits(text + 1, 2) * 60 + read_digits(text + 4, 2)) * 60000;
	*ms -= text[0] == '+' ? ahead : -ahead;
	return 6;
}

size_t log_stamp_iso(const char *text, size_t len, int64_t *wall_ms)
{
	if (!has_form(text, len, "0000-00-00T00:00:00"))
		return 0;
	int64_t days =
		days_of(read_digits(text, 4), read_digits(text + 5, 2), read_digits(text + 8, 2));
	int64_t s = read_digits(text + 11, 2) * 3600 + read_digits(text + 14, 2) * 60 +
		    read_digits(text + 17, 2);
	int64_t ms = days * DAY_MS + s * 1000;
	size_t at = 19;
	at += read_fraction(text + at, len - at, &ms);
	size_t behind = read_zone(text + at, len - at, &ms);
	*wall_ms = ms;
	return behind ? at + behind : 0;
}

static int64_t local_ms(struct tm tm, int year)
{
	tm.tm_year = year;
	tm.tm_isdst = -1;
	return (int64_t)mktime(&tm) * 1000;
}

/* The minute of such a time. The calendar of the C library is slow: it is asked once for each minute of
 * the log. */
static bool minute_of(const char *text, int64_t written_ms, int64_t *ms)
{
	static _Thread_local char last[12];
	static _Thread_local int64_t last_ms, last_written_ms;
	struct tm tm = {0}, now;
	time_t written = (time_t)(written_ms / 1000);
	if (memcmp(text, last, sizeof last) != 0 || written_ms != last_written_ms) {
		const char *end = strptime(text, "%b %d %H:%M", &tm);
		if (!end || end != text + sizeof last || !localtime_r(&written, &now))
			return false;
		last_ms = local_ms(tm, now.tm_year);
		if (last_ms > written_ms + DAY_MS)
			last_ms = local_ms(tm, now.tm_year - 1);
		memcpy(last, text, sizeof last);
		last_written_ms = written_ms;
	}
	*ms = last_ms;
	return true;
}

size_t log_stamp_read(const char *text, size_t len, int64_t written_ms, int64_t *wall_ms)
{
	if (len > 0 && is_digit(text[0]))
		return log_stamp_iso(text, len, wall_ms);
	if (!has_form(text, len, "aaa _0 00:00:00 ") || !minute_of(text, written_ms, wall_ms))
		return 0;
	*wall_ms += read_digits(text + 13, 2) * 1000;
	return 15;
}
