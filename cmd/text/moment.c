/* SPDX-License-Identifier: ISC */
#include "cmd/text/moment.h"

#include "base/date.h"
#include "base/internet_time.h"

#include <inttypes.h>
#include <time.h>

void moment_put(struct buf *to, int64_t wall_ms, bool utc)
{
	char text[INTERNET_TIME_TEXT];
	struct tm tm;
	int64_t date_ms = wall_ms + date_ahead_ms();
	time_t at = (time_t)(date_ms / 1000);
	if (utc)
		internet_time_text(date_ms, text);
	else
		strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S %z", localtime_r(&at, &tm));
	buf_puts(to, text);
}

void moment_put_json(struct buf *to, const char *name, int64_t wall_ms)
{
	buf_printf(to, "\"%s\":\"", name);
	moment_put(to, wall_ms, true);
	buf_puts(to, "\",");
}

void moment_put_span(struct buf *to, int64_t ms)
{
	int64_t s = ms / 1000;
	if (s < 10)
		buf_printf(to, "%.2g s", (double)(ms > 0 ? ms : 0) / 1000);
	else if (s < 120)
		buf_printf(to, "%" PRId64 " s", s);
	else if (s < 7200)
		buf_printf(to, "%" PRId64 " min", s / 60);
	else if (s < 172800)
		buf_printf(to, "%" PRId64 " h", s / 3600);
	else
		buf_printf(to, "%" PRId64 " days", s / 86400);
}

void moment_put_due(struct buf *to, int64_t wall_ms, int64_t now_ms, bool utc)
{
	moment_put(to, wall_ms, utc);
	if (wall_ms <= now_ms) {
		buf_puts(to, ", now");
		return;
	}
	buf_puts(to, ", in ");
	moment_put_span(to, wall_ms - now_ms);
}
