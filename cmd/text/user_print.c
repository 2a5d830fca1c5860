/* SPDX-License-Identifier: ISC */
#include "cmd/text/user_print.h"

#include "base/conf_units.h"
#include "base/log.h"

#include <inttypes.h>
#include <time.h>

static const char *const of_names[] = {
	[LIMIT_MESSAGES] = "messages", [LIMIT_RECIPIENTS] = "recipients"};

static void put_seen(struct buf *to, int64_t ms)
{
	char text[40];
	struct tm tm;
	time_t at = (time_t)(ms / 1000);
	if (ms == 0) {
		buf_puts(to, "never");
		return;
	}
	strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S %z", localtime_r(&at, &tm));
	buf_puts(to, text);
}

static void put_line(struct buf *to, const struct limiter_login *l)
{
	buf_printf(to, "%s %s messages=%" PRIu64 " recipients=%" PRIu64, l->name,
		   l->suspended ? "suspended" : "active", l->messages, l->recipients);
	for (int of = 0; of < LIMIT_OF_COUNT; of++)
		if (l->limit[of].events > 0)
			buf_printf(to, " %s_left=%" PRId64, of_names[of], l->room[of]);
	buf_printf(to, " refused=%" PRIu32 " failures=%" PRIu32 "\n", l->refused, l->failures);
}

void user_print_list(struct buf *to, const struct limiter_order *o)
{
	for (int i = 0; i < o->n; i++)
		put_line(to, &o->login[i]);
}

static void put_full(struct buf *to, const struct limiter_login *l)
{
	buf_printf(to, "login:      %s\nstate:      %s\nseen:       ", l->name,
		   l->suspended ? "suspended" : "active");
	put_seen(to, l->seen_ms);
	buf_printf(to, "\nsent:       %" PRIu64 " messages, %" PRIu64 " recipients\n", l->messages,
		   l->recipients);
	for (int of = 0; of < LIMIT_OF_COUNT; of++) {
		if (l->limit[of].events == 0)
			continue;
		buf_puts(to, "limit:      ");
		conf_rate_print(&l->limit[of], to);
		buf_printf(to, " %s, %" PRId64 " left now\n", of_names[of], l->room[of]);
	}
	buf_printf(to, "refused:    %" PRIu32 " over a limit or while suspended\n", l->refused);
	buf_printf(to, "failures:   %" PRIu32 " wrong passwords\n", l->failures);
}

void user_print_full(struct buf *to, const struct limiter_order *o)
{
	for (int i = 0; i < o->n; i++) {
		put_full(to, &o->login[i]);
		buf_puts(to, i + 1 < o->n ? "\n" : "");
	}
}

static void put_json(struct buf *to, const struct limiter_login *l)
{
	buf_puts(to, "{\"login\":");
	log_json_string(to, l->name);
	buf_printf(to,
		   ",\"suspended\":%s,\"seen\":%" PRId64 ".%03d,\"messages\":%" PRIu64
		   ",\"recipients\":%" PRIu64 ",\"refused\":%" PRIu32 ",\"failures\":%" PRIu32,
		   l->suspended ? "true" : "false", l->seen_ms / 1000, (int)(l->seen_ms % 1000),
		   l->messages, l->recipients, l->refused, l->failures);
	for (int of = 0; of < LIMIT_OF_COUNT; of++) {
		if (l->limit[of].events == 0)
			continue;
		buf_printf(to, ",\"%s_limit\":", of_names[of]);
		conf_rate_print(&l->limit[of], to);
		buf_printf(to, ",\"%s_left\":%" PRId64, of_names[of], l->room[of]);
	}
	buf_puts(to, "}\n");
}

void user_print_json(struct buf *to, const struct limiter_order *o)
{
	for (int i = 0; i < o->n; i++)
		put_json(to, &o->login[i]);
}

void user_print_done(struct buf *to, const struct limiter_order *o)
{
	static const char *const done[] = {[LIMITER_SUSPEND] = "suspended",
					   [LIMITER_RESUME] = "resumed",
					   [LIMITER_RESET] = "reset"};
	buf_printf(to, "%s %s%s\n", o->name, done[o->op],
		   o->stranger ? ", though nobody of that name was seen, or is in the users' file"
			       : "");
}
