/* SPDX-License-Identifier: ISC */
#include "cmd/text/condition_print.h"

#include "base/internet_time.h"
#include "cmd/text/json_put.h"
#include "cmd/text/moment.h"

void condition_print_line(struct buf *to, const struct condition_row *r, int64_t now_ms)
{
	int64_t lasts_ms = now_ms - r->since_ms;
	buf_printf(to, "%s%s%s, for ", condition_name(r->is), *r->subject ? " " : "", r->subject);
	moment_put_span(to, lasts_ms > 0 ? lasts_ms : 0);
	buf_printf(to, ": %s", condition_effect(r->is));
	if (r->reason && *r->reason)
		buf_printf(to, " (%s)", r->reason);
	buf_printf(to, ". To do: %s", condition_remedy(r->is));
}

static void put_row(struct buf *to, const struct condition_row *r)
{
	char since[INTERNET_TIME_TEXT];
	buf_puts(to, "{");
	json_put_text(to, "name", condition_name(r->is));
	json_put_text(to, "subject", *r->subject ? r->subject : NULL);
	json_put_text(to, "since", internet_time_text(r->since_ms, since));
	json_put_number(to, "since_ms", r->since_ms);
	json_put_flag(to, "stops_mail", condition_stops(r->is));
	json_put_text(to, "effect", condition_effect(r->is));
	json_put_text(to, "remedy", condition_remedy(r->is));
	json_put_text(to, "reason", r->reason);
	json_put_end(to, '}');
}

void condition_print_array(struct buf *to, const struct conditions *c)
{
	buf_puts(to, "\"conditions\":[");
	for (int i = 0; i < c->n; i++)
		put_row(to, &c->row[i]);
	json_put_end(to, ']');
}
