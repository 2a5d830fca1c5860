/* SPDX-License-Identifier: ISC */
#include "cmd/logs/log_when.h"

#include "base/buf.h"
#include "base/conf_units.h"
#include "base/log_stamp.h"

#include <string.h>
#include <time.h>

static int64_t local_ms(struct tm tm)
{
	tm.tm_isdst = -1;
	return (int64_t)mktime(&tm) * 1000;
}

static struct tm date_of(int64_t wall_ms)
{
	struct tm tm;
	time_t at = (time_t)(wall_ms / 1000);
	localtime_r(&at, &tm);
	tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
	return tm;
}

/* Not the 31st of a month that has 30 days. */
static bool is_real_day(struct tm tm)
{
	const int month = tm.tm_mon, day = tm.tm_mday;
	tm.tm_hour = 12;
	tm.tm_isdst = -1;
	mktime(&tm);
	return tm.tm_mon == month && tm.tm_mday == day;
}

/* All of the text in one of these forms, on top of what is in tm. */
static bool has_form(const char *text, const char *const *forms, struct tm *tm)
{
	for (; *forms; forms++) {
		struct tm read = *tm;
		const char *end = strptime(text, *forms, &read);
		if (end && !*end && is_real_day(read)) {
			*tm = read;
			return true;
		}
	}
	return false;
}

bool log_when_day(const char *text, int64_t now_ms, int64_t *from_ms, int64_t *to_ms)
{
	static const char *const dates[] = {"%Y-%m-%d", NULL};
	struct tm day = date_of(now_ms);
	if (strcmp(text, "yesterday") == 0)
		day.tm_mday--;
	else if (strcmp(text, "today") != 0 && !has_form(text, dates, &day))
		return false;
	*from_ms = local_ms(day);
	day.tm_mday++;
	*to_ms = local_ms(day);
	return true;
}

static bool parse_ago(const char *text, int64_t now_ms, int64_t *wall_ms)
{
	int64_t span_ms;
	struct buf why = {0};
	bool good = *text && conf_amount_parse(CONF_duration, text, &span_ms, &why);
	buf_fini(&why);
	if (good)
		*wall_ms = now_ms - span_ms;
	return good;
}

bool log_when(const char *text, int64_t now_ms, bool end, int64_t *wall_ms)
{
	static const char *const clocks[] = {"%H:%M", "%H:%M:%S", NULL};
	static const char *const moments[] = {"%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S",
					      "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", NULL};
	struct tm tm = date_of(now_ms), whole = tm;
	int64_t from_ms, to_ms;
	size_t len = strlen(text);
	if (log_when_day(text, now_ms, &from_ms, &to_ms)) {
		*wall_ms = end ? to_ms : from_ms;
	} else if (has_form(text, clocks, &tm)) {
		*wall_ms = local_ms(tm);
		tm.tm_mday--;
		if (*wall_ms > now_ms)
			*wall_ms = local_ms(tm);
	} else if (has_form(text, moments, &whole)) {
		*wall_ms = local_ms(whole);
	} else {
		return (len > 0 && log_stamp_iso(text, len, wall_ms) == len) ||
		       parse_ago(text, now_ms, wall_ms);
	}
	return true;
}
