/* SPDX-License-Identifier: ISC */
#include "base/datetime.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* Not strftime(): names of days and months don't depend on the locale. */
const char *datetime_text(int64_t wall_ms, char text[DATETIME_TEXT])
{
	static const char days[] = "SunMonTueWedThuFriSat";
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	/* The time zone is looked at once a second, not once a message. */
	static _Thread_local time_t cached_at = -1;
	static _Thread_local char cached[DATETIME_TEXT];
	time_t now = (time_t)(wall_ms / 1000);
	if (now != cached_at) {
		struct tm tm;
		localtime_r(&now, &tm);
		long minutes = tm.tm_gmtoff / 60;
		long off = minutes < 0 ? -minutes : minutes;
		snprintf(cached, sizeof cached, "%.3s, %02d %.3s %d %02d:%02d:%02d %c%02ld%02ld",
			 days + 3 * tm.tm_wday, tm.tm_mday, months + 3 * tm.tm_mon,
			 tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec,
			 minutes < 0 ? '-' : '+', off / 60, off % 60);
		cached_at = now;
	}
	memcpy(text, cached, DATETIME_TEXT);
	return text;
}
