/* SPDX-License-Identifier: ISC */
#include "base/log_format.h"

#include "base/utf8.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* What reads such lines looks for them by these words: pflogsumm for status=, from=, client=,
 * removed; fail2ban for NOQUEUE: reject. */

enum { VALUE_MAX = 2000 };

/* "Jan  2 03:04:05 host", in local time as syslogd has it. Made once a second and thread: the C
 * library takes a lock for the calendar. */
static const char *stamp(int64_t wall_ms)
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

static void begin(struct buf *to, const struct log_record *r, const char *program)
{
	log_begin(to, r);
	if (!r->syslog)
		buf_printf(to, "%s ", stamp(r->wall_ms));
	buf_printf(to, "sluice/%s[%d]: ", program, (int)getpid());
}

static void append_clean(struct buf *to, const char *value)
{
	char clean[VALUE_MAX + 1];
	buf_append(to, clean, utf8_clean(clean, value, VALUE_MAX));
}

static void append_value(struct buf *to, const struct log_record *r, const char *key,
			 const char *without)
{
	append_clean(to, log_value(r, key, without));
}

/* Postfix says name[address], and unknown[address] where there is no name. */
static void append_client(struct buf *to, const struct log_record *r)
{
	const char *client = log_value(r, "client", "127.0.0.1");
	if (strchr(client, '[')) {
		buf_puts(to, client[0] == '[' ? "unknown" : "");
		append_clean(to, client);
		return;
	}
	buf_puts(to, "unknown[");
	append_clean(to, client);
	buf_puts(to, "]");
}

static int format_connection(struct buf *to, const struct log_record *r)
{
	begin(to, r, "smtpd");
	buf_printf(to, "%s from ", r->event);
	append_client(to, r);
	buf_puts(to, "\n");
	return 1;
}

static void append_address(struct buf *to, const char *name, const char *address)
{
	buf_printf(to, "%s=<", name);
	append_clean(to, address);
	buf_puts(to, ">");
}

static int format_too_many_errors(struct buf *to, const struct log_record *r)
{
	begin(to, r, "smtpd");
	buf_puts(to, "too many errors after ");
	append_value(to, r, "stage", "CONNECT");
	buf_puts(to, " from ");
	append_client(to, r);
	buf_puts(to, "\n");
	return 1;
}

static int format_reject(struct buf *to, const struct log_record *r)
{
	const char *recipient = log_value(r, "to", NULL);
	const char *reason = log_value(r, "reason", "refused");
	begin(to, r, "smtpd");
	buf_puts(to, "NOQUEUE: reject: ");
	append_value(to, r, "stage", "CONNECT");
	buf_puts(to, " from ");
	append_client(to, r);
	buf_puts(to, ": ");
	append_value(to, r, "code", "550");
	buf_puts(to, " ");
	append_value(to, r, "dsn", "5.0.0");
	buf_puts(to, " ");
	if (recipient) {
		buf_puts(to, "<");
		append_clean(to, recipient);
		buf_puts(to, ">: ");
	}
	append_clean(to, reason);
	buf_puts(to, "; ");
	append_address(to, "from", log_value(r, "from", ""));
	if (recipient)
		append_address(to, " to", recipient);
	buf_puts(to, " proto=");
	append_value(to, r, "proto", "SMTP");
	append_address(to, " helo", log_value(r, "helo", ""));
	buf_puts(to, "\n");
	return 1 + (strcmp(reason, "Too many errors") == 0 ? format_too_many_errors(to, r) : 0);
}

/* Where a message came from: a client, the maildrop, or, for a report, another message. */
static void format_origin(struct buf *to, const struct log_record *r, const char *id)
{
	if (log_value(r, "report_of", NULL)) {
		begin(to, r, "bounce");
		append_value(to, r, "report_of", "?");
		buf_printf(to, ": sender notification: %s\n", id);
	} else if (log_value(r, "via", NULL)) {
		begin(to, r, "pickup");
		buf_printf(to, "%s: uid=", id);
		append_value(to, r, "uid", "0");
		append_address(to, " from", log_value(r, "from", ""));
		buf_puts(to, "\n");
	} else {
		begin(to, r, "smtpd");
		buf_printf(to, "%s: client=", id);
		append_client(to, r);
		if (log_value(r, "user", NULL)) {
			buf_puts(to, ", sasl_username=");
			append_value(to, r, "user", "");
		}
		buf_puts(to, "\n");
	}
}

static int format_queued(struct buf *to, const struct log_record *r)
{
	const char *id = log_value(r, "id", "?");
	format_origin(to, r, id);
	begin(to, r, "cleanup");
	buf_printf(to, "%s: message-id=", id);
	append_value(to, r, "message_id", "<>");
	buf_puts(to, "\n");
	begin(to, r, "qmgr");
	buf_printf(to, "%s: ", id);
	append_address(to, "from", log_value(r, "from", ""));
	buf_puts(to, ", size=");
	append_value(to, r, "size", "0");
	buf_puts(to, ", nrcpt=");
	append_value(to, r, "nrcpt", "1");
	buf_puts(to, " (queue active)\n");
	return 3;
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

static int format_other(struct buf *to, const struct log_record *r)
{
	begin(to, r, program_of(r->event));
	if (r->level >= LOG_LEVEL_WARNING)
		buf_printf(to, "%s: ", log_level_name(r->level));
	buf_puts(to, r->event);
	for (int i = 0; i < r->npair; i++) {
		buf_printf(to, " %s=", r->pair[i].key);
		append_clean(to, r->pair[i].value);
	}
	buf_puts(to, "\n");
	return 1;
}

/* Postfix logs a login that failed in these words, and one that did not with the first message. */
static int format_auth(struct buf *to, const struct log_record *r)
{
	if (strcmp(log_value(r, "result", ""), "failed") != 0)
		return format_other(to, r);
	begin(to, r, "smtpd");
	buf_puts(to, "warning: ");
	append_client(to, r);
	buf_puts(to, ": SASL ");
	append_value(to, r, "mechanism", "?");
	buf_puts(to, " authentication failed: wrong name or password, sasl_username=");
	append_value(to, r, "login", "(unavailable)");
	buf_puts(to, "\n");
	return 1;
}

static int format_delivery(struct buf *to, const struct log_record *r)
{
	bool doubt = strcmp(r->event, "in_doubt") == 0;
	begin(to, r, "smtp");
	append_value(to, r, "id", "?");
	buf_puts(to, ": to=<");
	append_value(to, r, "to", "");
	buf_puts(to, ">, relay=");
	append_value(to, r, "relay", "none");
	buf_puts(to, ", delay=");
	append_value(to, r, "delay", "0");
	buf_puts(to, ", delays=");
	append_value(to, r, "delays", "0/0/0/0");
	buf_puts(to, ", dsn=");
	append_value(to, r, "dsn", "2.0.0");
	buf_printf(to, ", status=%s (", doubt ? "deferred" : r->event);
	append_value(to, r, "reply", "no reply");
	buf_puts(to, ")\n");
	return 1;
}

static int format_done(struct buf *to, const struct log_record *r)
{
	begin(to, r, "qmgr");
	append_value(to, r, "id", "?");
	buf_puts(to, ": removed\n");
	return 1;
}

int log_format_postfix(struct buf *to, const struct log_record *r)
{
	static const struct {
		const char *event;
		int (*format)(struct buf *, const struct log_record *);
	} forms[] = {
		{"connect", format_connection}, {"disconnect", format_connection},
		{"reject", format_reject},	{"queued", format_queued},
		{"sent", format_delivery},	{"deferred", format_delivery},
		{"bounced", format_delivery},	{"in_doubt", format_delivery},
		{"done", format_done},		{"auth", format_auth},
	};
	for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
		if (strcmp(r->event, forms[i].event) == 0)
			return forms[i].format(to, r);
	return format_other(to, r);
}
