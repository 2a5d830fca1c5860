/* SPDX-License-Identifier: ISC */
#include "base/figures.h"

#include "base/date.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

enum { DAY_MAX = 10000000 }; /* in the year 29349 */

static int32_t local_day(int64_t date_ms)
{
	struct tm tm;
	time_t at = (time_t)(date_ms / 1000);
	if (!localtime_r(&at, &tm))
		return 0;
	tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
	return (int32_t)(timegm(&tm) / 86400);
}

void figures_turn(struct figures *f, int64_t wall_ms)
{
	int64_t date_ms = wall_ms + date_ahead_ms();
	uint32_t slot = (uint32_t)(date_ms / FIGURES_SLOT_MS);
	if (slot == f->slot)
		return;
	int32_t day = local_day(date_ms);
	if (day == f->day + 1)
		memcpy(f->yesterday, f->today, sizeof f->today);
	else if (day > f->day)
		memset(f->yesterday, 0, sizeof f->yesterday);
	if (day > f->day)
		memset(f->today, 0, sizeof f->today);
	f->day = day;
	f->slot = slot;
}

void figures_count(struct figures *f, int which, uint32_t n, int64_t wall_ms)
{
	assert(which >= 0 && which < FIGURES);
	figures_turn(f, wall_ms);
	uint32_t room = UINT32_MAX - f->today[which];
	f->today[which] += n < room ? n : room;
}

bool figures_any(const struct figures *f)
{
	uint32_t any = 0;
	for (int i = 0; i < FIGURES; i++)
		any |= f->today[i] | f->yesterday[i];
	return any > 0;
}

void figures_write(const struct figures *f, struct buf *to)
{
	buf_printf(to, "%" PRId32, f->day);
	for (int i = 0; i < FIGURES; i++)
		buf_printf(to, " %" PRIu32, f->today[i]);
	for (int i = 0; i < FIGURES; i++)
		buf_printf(to, " %" PRIu32, f->yesterday[i]);
}

bool figures_number(const char **text, int64_t most, int64_t *to)
{
	const char *at = *text + strspn(*text, " ");
	int64_t n = 0;
	assert(most >= 9);
	if (*at < '0' || *at > '9')
		return false;
	for (; *at >= '0' && *at <= '9'; at++) {
		int digit = *at - '0';
		if (n > (most - digit) / 10)
			return false;
		n = n * 10 + digit;
	}
	if (*at != ' ' && *at != '\n' && *at != '\0')
		return false;
	*to = n;
	*text = at;
	return true;
}

bool figures_read(struct figures *f, const char **text)
{
	struct figures read = {0};
	int64_t n;
	if (!figures_number(text, DAY_MAX, &n))
		return false;
	read.day = (int32_t)n;
	for (int i = 0; i < 2 * FIGURES; i++) {
		uint32_t *to = i < FIGURES ? &read.today[i] : &read.yesterday[i - FIGURES];
		if (!figures_number(text, UINT32_MAX, &n))
			return false;
		*to = (uint32_t)n;
	}
	*f = read;
	return true;
}
