/* SPDX-License-Identifier: ISC */
#include "base/log_format.h"

#include "base/log_forms.h"
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { VALUE_MAX = 2000 };

/* "Jan  2 03:04:05 host", in local time as syslogd has it. Made once a second and thread: the C
 * library takes a lock for the calendar. */
static const char *syslog_stamp(int64_t wall_ms)
{
	static _Thread_local char text[32 + 256];
	static _Thread_local time_t of = -1;
	time_t now = (time_t)(wall_ms / 1000);
	if (now != of) {
		struct tm tm;
		char host[256] = "localhost";
		localtime_r(&now, &tm);
		gethostname(host, sizeof host - 1);
		size_t len = strftime(text, 32, "%b %e %H:%M:%S ", &tm);
		snprintf(text + len, sizeof text - len, "%s", host);
		of = now;
	}
	return text;
}

static void begin_line(struct buf *to, const struct log_record *r, const char *program)
{
	if (!r->syslog)
		buf_printf(to, "%s ", syslog_stamp(r->wall_ms));
	buf_printf(to, "sluice/%s[%d]: ", program, (int)getpid());
}

static void append_clean(struct buf *to, const char *value)
{
	char clean[VALUE_MAX + 1];
	buf_append(to, clean, utf8_clean(clean, value, VALUE_MAX));
}

/* Postfix says name[address], and unknown[address] where there is no name. */
static void append_client(struct buf *to, const char *client)
{
	bool named = strchr(client, '[') != NULL;
	buf_puts(to, client[0] == '[' || !named ? "unknown" : "");
	buf_puts(to, named ? "" : "[");
	append_clean(to, client);
	buf_puts(to, named ? "" : "]");
}

/* One pair, from between the braces: KEY or KEY=TEXT. */
static void append_value(struct buf *to, const struct log_record *r, const char *what, size_t len)
{
	char key[64];
	snprintf(key, sizeof key, "%.*s", (int)len, what);
	char *without = strchr(key, '=');
	if (without)
		*without++ = '\0';
	const char *value = log_value(r, key, without ? without : "");
	(strcmp(key, "client") == 0 ? append_client : append_clean)(to, value);
}

static void format_as(struct buf *to, const struct log_record *r, enum log_form_name name)
{
	const struct log_form *form = &log_forms[name];
	begin_line(to, r, form->program);
	for (const char *s = form->text; *s;) {
		size_t plain = strcspn(s, "{"), inner = strcspn(s, "}") - plain;
		buf_append(to, s, plain);
		if (!s[plain])
			break;
		append_value(to, r, s + plain + 1, inner - 1);
		s += plain + inner + 1;
	}
	buf_puts(to, "\n");
}

static void format_reject(struct buf *to, const struct log_record *r)
{
	format_as(to, r, log_value(r, "to", NULL) ? LOG_FORM_REJECT_TO : LOG_FORM_REJECT);
	if (strcmp(log_value(r, "reason", ""), "Too many errors") == 0)
		format_as(to, r, LOG_FORM_ERRORS);
}

static void format_discard(struct buf *to, const struct log_record *r)
{
	bool empty = strcmp(log_value(r, "reason", ""), LOG_NO_RECIPIENT) == 0;
	format_as(to, r,
		  log_value(r, "to", NULL) ? LOG_FORM_DISCARD_TO
		  : empty		   ? LOG_FORM_EMPTY
					   : LOG_FORM_DISCARD);
}

/* Where a message came from: a client, the maildrop, or, for a report, another message. */
static enum log_form_name origin_of(const struct log_record *r)
{
	if (log_value(r, "report_of", NULL))
		return LOG_FORM_REPORT;
	if (log_value(r, "via", NULL))
		return LOG_FORM_PICKUP;
	return log_value(r, "user", NULL) ? LOG_FORM_LOGIN : LOG_FORM_CLIENT;
}

static void format_queued(struct buf *to, const struct log_record *r)
{
	format_as(to, r, origin_of(r));
	if (log_value(r, "held", NULL))
		format_as(to, r, LOG_FORM_HELD);
	format_as(to, r, LOG_FORM_MESSAGE_ID);
	format_as(to, r, LOG_FORM_QUEUED);
}

/* pflogsumm lists each word of the master. */
static const char *program_of(const char *event)
{
	static const char *const of_master[] = {"ready", "stopped", "reload", "restart", "drain"};
	for (size_t i = 0; i < sizeof of_master / sizeof of_master[0]; i++)
		if (strcmp(event, of_master[i]) == 0)
			return "master";
	return "relay";
}

static void format_other(struct buf *to, const struct log_record *r)
{
	begin_line(to, r, program_of(r->event));
	if (r->level >= LOG_LEVEL_WARNING)
		buf_printf(to, "%s: ", log_level_name(r->level));
	buf_puts(to, r->event);
	for (int i = 0; i < r->npair; i++) {
		buf_printf(to, " %s=", r->pair[i].key);
		append_clean(to, r->pair[i].value);
	}
	buf_puts(to, "\n");
}

/* Postfix logs a login that failed in these words, and one that did not with the first message. */
static bool login_failed(const struct log_record *r)
{
	return strcmp(r->event, "auth") == 0 && strcmp(log_value(r, "result", ""), "failed") == 0;
}

static bool format_alone(struct buf *to, const struct log_record *r)
{
	static const enum log_form_name alone[] = {
		LOG_FORM_CONNECT, LOG_FORM_DISCONNECT, LOG_FORM_SENT, LOG_FORM_DEFERRED,
		LOG_FORM_BOUNCED, LOG_FORM_IN_DOUBT,   LOG_FORM_DONE,
	};
	for (size_t i = 0; i < sizeof alone / sizeof alone[0]; i++)
		if (strcmp(r->event, log_forms[alone[i]].event) == 0) {
			format_as(to, r, alone[i]);
			return true;
		}
	return false;
}

void log_format_postfix(struct buf *to, const struct log_record *r)
{
	if (format_alone(to, r))
		return;
	if (strcmp(r->event, "reject") == 0)
		format_reject(to, r);
	else if (strcmp(r->event, "discard") == 0)
		format_discard(to, r);
	else if (strcmp(r->event, "queued") == 0)
		format_queued(to, r);
	else if (login_failed(r))
		format_as(to, r, LOG_FORM_AUTH);
	else
		format_other(to, r);
}
