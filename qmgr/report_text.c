/* SPDX-License-Identifier: ISC */
#include "qmgr/report_text.h"

#include "base/address.h"
#include "base/date.h"
#include "base/mailaddr.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

const char *report_date(int64_t wall_ms, char text[REPORT_DATE])
{
	time_t t = (time_t)((wall_ms + date_ahead_ms()) / 1000);
	struct tm tm;
	gmtime_r(&t, &tm);
	strftime(text, REPORT_DATE, "%a, %d %b %Y %H:%M:%S +0000", &tm);
	return text;
}

/* How much of the text goes on this line: up to the last blank that fits, or the first there is. */
static size_t cut_length(const char *text, size_t room)
{
	size_t len = strlen(text);
	if (len <= room)
		return len;
	for (size_t i = room; i > 0; i--)
		if (text[i] == ' ')
			return i;
	size_t next = room + strcspn(text + room, " ");
	if (next > 900)
		for (next = 900; (text[next] & 0xc0) == 0x80;)
			next--; /* not through a character */
	return next;
}

void report_folded(struct buf *b, const char *indent, const char *fmt, ...)
{
	char text[2048];
	va_list args;
	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	const char *rest = text;
	for (const char *more = ""; *rest; more = " ") {
		size_t len = cut_length(rest, REPORT_LINE_MAX - strlen(indent) - strlen(more));
		buf_printf(b, "%s%s%.*s\r\n", indent, more, (int)len, rest);
		rest += len;
		rest += strspn(rest, " ");
	}
}

/* "mx.a.test[192.0.2.1]:25" is called by its name; of a host that has none that is its address. */
void report_mta(struct buf *b, const char *host)
{
	char name[ADDRESS_PEER_MAX];
	union address address;
	snprintf(name, sizeof name, "%.*s", (int)strcspn(host, "[ "), host);
	if (address_parse(name, 0, &address))
		report_folded(b, "", "Remote-MTA: dns; [%s%s]", strchr(name, ':') ? "IPv6:" : "",
			      name);
	else
		report_folded(b, "", "Remote-MTA: dns; %.*s", (int)strcspn(name, ":"), name);
}

void report_orcpt(struct buf *b, const char *orcpt)
{
	char address[MAILADDR_MAX * 3];
	const char *semicolon = orcpt ? strchr(orcpt, ';') : NULL;
	if (!semicolon ||
	    !xtext_decode(semicolon + 1, strlen(semicolon + 1), address, sizeof address))
		return;
	report_folded(b, "", "Original-Recipient: %.*s;%s", (int)(semicolon - orcpt), orcpt,
		      address);
}

void report_envid(struct buf *b, const char *envid)
{
	char text[256];
	if (envid && xtext_decode(envid, strlen(envid), text, sizeof text))
		report_folded(b, "", "Original-Envelope-Id: %s", text);
}
