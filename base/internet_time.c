/* SPDX-License-Identifier: ISC */
#include "base/internet_time.h"

#include <ctype.h>
#include <time.h>

/* So many digits, with a value in this range. */
static bool take_digits(const char **at, int digits, int low, int high, int *value)
{
	*value = 0;
	for (int i = 0; i < digits; i++, (*at)++) {
		if (!isdigit((unsigned char)**at))
			return false;
		*value = *value * 10 + (**at - '0');
	}
	return *value >= low && *value <= high;
}

static bool take_letter(const char **at, char lower, char upper)
{
	bool there = **at == lower || **at == upper;
	*at += there;
	return there;
}

static bool take_sign(const char **at, char sign)
{
	return take_letter(at, sign, sign);
}

static int days_of(int year, int month)
{
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	bool leaps = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
	return days[month - 1] + (month == 2 && leaps);
}

static bool take_day(const char **at, struct tm *tm)
{
	int year, month;
	if (!take_digits(at, 4, 0, 9999, &year) || !take_sign(at, '-') ||
	    !take_digits(at, 2, 1, 12, &month) || !take_sign(at, '-') ||
	    !take_digits(at, 2, 1, days_of(year, month), &tm->tm_mday))
		return false;
	tm->tm_year = year - 1900;
	tm->tm_mon = month - 1;
	return true;
}

/* Of a second; there need not be one. */
static bool take_fraction(const char **at, int *ms)
{
	int worth = 100;
	*ms = 0;
	if (!take_sign(at, '.'))
		return true;
	if (!isdigit((unsigned char)**at))
		return false;
	for (; isdigit((unsigned char)**at); (*at)++, worth /= 10)
		*ms += worth * (**at - '0');
	return true;
}

static bool take_hour(const char **at, struct tm *tm, int *ms)
{
	enum { LEAP = 60 };
	return take_digits(at, 2, 0, 23, &tm->tm_hour) && take_sign(at, ':') &&
	       take_digits(at, 2, 0, 59, &tm->tm_min) && take_sign(at, ':') &&
	       take_digits(at, 2, 0, LEAP, &tm->tm_sec) && take_fraction(at, ms);
}

/* How far the local time is ahead of UTC. */
static bool take_offset(const char **at, int *minutes)
{
	int hours;
	*minutes = 0;
	if (take_letter(at, 'z', 'Z'))
		return true;
	bool behind = take_sign(at, '-');
	if (!behind && !take_sign(at, '+'))
		return false;
	if (!take_digits(at, 2, 0, 23, &hours) || !take_sign(at, ':') ||
	    !take_digits(at, 2, 0, 59, minutes))
		return false;
	*minutes = (behind ? -1 : 1) * (*minutes + 60 * hours);
	return true;
}

bool internet_time_parse(const char *text, int64_t *wall_ms)
{
	struct tm tm = {0};
	int ms, ahead;
	const char *at = text;
	if (!take_day(&at, &tm) || !take_letter(&at, 't', 'T') || !take_hour(&at, &tm, &ms) ||
	    !take_offset(&at, &ahead) || *at)
		return false;
	*wall_ms = 1000 * ((int64_t)timegm(&tm) - 60 * (int64_t)ahead) + ms;
	return true;
}

const char *internet_time_text(int64_t wall_ms, char text[INTERNET_TIME_TEXT])
{
	time_t seconds = (time_t)(wall_ms / 1000);
	struct tm tm;
	gmtime_r(&seconds, &tm);
	strftime(text, INTERNET_TIME_TEXT, "%Y-%m-%dT%H:%M:%SZ", &tm);
	return text;
}
