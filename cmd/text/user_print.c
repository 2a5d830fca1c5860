/* SPDX-License-Identifier: ISC */
#include "cmd/text/user_print.h"

#include "base/conf_units.h"
#include "base/date.h"
#include "base/log.h"
#include "cmd/text/moment.h"

#include <inttypes.h>

static const char *const of_names[] = {
	[LIMIT_MESSAGES] = "messages", [LIMIT_RECIPIENTS] = "recipients"};

static void put_line(struct buf *to, const struct limiter_login *l)
{
	const uint32_t *today = l->figures.today, *yesterday = l->figures.yesterday;
	buf_printf(to, "%s %s messages=%" PRIu32 " recipients=%" PRIu32, l->name,
		   l->suspended ? "suspended" : "active", today[LOGIN_MESSAGES],
		   today[LOGIN_RECIPIENTS]);
	for (int of = 0; of < LIMIT_OF_COUNT; of++)
		if (l->limit[of].events > 0)
			buf_printf(to, " %s_left=%" PRId64, of_names[of], l->room[of]);
	buf_printf(to, " refused=%" PRIu32 " failures=%" PRIu32, today[LOGIN_REFUSED],
		   today[LOGIN_FAILURES]);
	buf_printf(to, " yesterday=%" PRIu32 "\n", yesterday[LOGIN_MESSAGES]);
}

void user_print_list(struct buf *to, const struct limiter_order *o)
{
	for (int i = 0; i < o->n; i++)
		put_line(to, &o->login[i]);
}

static void put_sent(struct buf *to, const char *when, const uint32_t figure[FIGURES])
{
	buf_printf(to, "%s %" PRIu32 " messages, %" PRIu32 " recipients", when,
		   figure[LOGIN_MESSAGES], figure[LOGIN_RECIPIENTS]);
}

static void put_both(struct buf *to, const char *what, const struct limiter_login *l,
		     enum login_figure which, const char *of)
{
	buf_printf(to, "%s today %" PRIu32 ", yesterday %" PRIu32 " %s\n", what,
		   l->figures.today[which], l->figures.yesterday[which], of);
}

static void put_full(struct buf *to, const struct limiter_login *l, int64_t queued)
{
	buf_printf(to, "login:      %s\nstate:      %s\nseen:       ", l->name,
		   l->suspended ? "suspended" : "active");
	if (l->seen_ms)
		moment_put(to, l->seen_ms, false);
	else
		buf_puts(to, "never");
	put_sent(to, "\nsent:       today", l->figures.today);
	put_sent(to, "; yesterday", l->figures.yesterday);
	buf_puts(to, "\n");
	for (int of = 0; of < LIMIT_OF_COUNT; of++) {
		if (l->limit[of].events == 0)
			continue;
		buf_puts(to, "limit:      ");
		conf_rate_print(&l->limit[of], to);
		buf_printf(to, " %s, %" PRId64 " left now\n", of_names[of], l->room[of]);
	}
	put_both(to, "refused:   ", l, LOGIN_REFUSED, "over a limit or while suspended");
	put_both(to, "failures:  ", l, LOGIN_FAILURES, "wrong passwords");
	if (queued != USER_PRINT_UNCOUNTED)
		buf_printf(to, "queue:      %" PRId64 " messages\n", queued);
}

void user_print_full(struct buf *to, const struct limiter_order *o, int64_t queued)
{
	for (int i = 0; i < o->n; i++) {
		put_full(to, &o->login[i], queued);
		buf_puts(to, i + 1 < o->n ? "\n" : "");
	}
}

static void put_json_figures(struct buf *to, const uint32_t figure[FIGURES])
{
	buf_printf(to,
		   "\"messages\":%" PRIu32 ",\"recipients\":%" PRIu32 ",\"refused\":%" PRIu32
		   ",\"failures\":%" PRIu32,
		   figure[LOGIN_MESSAGES], figure[LOGIN_RECIPIENTS], figure[LOGIN_REFUSED],
		   figure[LOGIN_FAILURES]);
}

static void put_json(struct buf *to, const struct limiter_login *l, int64_t queued)
{
	int64_t seen_ms = l->seen_ms > 0 ? l->seen_ms + date_ahead_ms() : 0;
	buf_puts(to, "{\"login\":");
	log_json_string(to, l->name);
	buf_printf(to, ",\"suspended\":%s,\"seen\":%" PRId64 ".%03d,",
		   l->suspended ? "true" : "false", seen_ms / 1000, (int)(seen_ms % 1000));
	put_json_figures(to, l->figures.today);
	buf_puts(to, ",\"yesterday\":{");
	put_json_figures(to, l->figures.yesterday);
	buf_puts(to, "}");
	for (int of = 0; of < LIMIT_OF_COUNT; of++) {
		if (l->limit[of].events == 0)
			continue;
		buf_printf(to, ",\"%s_limit\":", of_names[of]);
		conf_rate_print(&l->limit[of], to);
		buf_printf(to, ",\"%s_left\":%" PRId64, of_names[of], l->room[of]);
	}
	if (queued != USER_PRINT_UNCOUNTED)
		buf_printf(to, ",\"queued\":%" PRId64, queued);
	buf_puts(to, "}\n");
}

void user_print_json(struct buf *to, const struct limiter_order *o, int64_t queued)
{
	for (int i = 0; i < o->n; i++)
		put_json(to, &o->login[i], queued);
}

void user_print_done(struct buf *to, const struct limiter_order *o)
{
	buf_printf(to, "%s %s%s%s\n", o->name, order_done(o->op),
		   o->stranger ? ", though nobody of that name was seen" : "",
		   o->stranger && o->listed ? ", or is in the users' file" : "");
}
