/* SPDX-License-Identifier: ISC */
#include "cmd/text/stats_print.h"

#include "base/date.h"
#include "cmd/cmd.h"
#include "cmd/text/condition_print.h"

#include <inttypes.h>
#include <string.h>

static void put_conditions(const struct metrics_print *p)
{
	struct conditions c;
	conditions_take(&c);
	if (p->form == METRICS_JSON) {
		buf_puts(p->to, ",");
		condition_print_array(p->to, &c);
		buf_shorten(p->to, 1);
	} else if (p->form == METRICS_LINES) {
		for (int i = 0; i < c.n; i++) {
			buf_puts(p->to, STATS_CONDITION);
			condition_print_line(p->to, &c.row[i], date_ms());
			buf_puts(p->to, "\n");
		}
	}
	conditions_fini(&c);
}

static void put_program(const struct metrics_print *p, const struct stats_view *v)
{
	int64_t uptime = v->uptime_ms / 1000;
	bool accepting = v->accepting && !condition_stops_mail();
	switch (p->form) {
	case METRICS_LINES:
		buf_printf(p->to, "version %s\nuptime_seconds %" PRId64 "\naccepting %s\n",
			   SLUICE_VERSION, uptime, accepting ? "yes" : "no");
		break;
	case METRICS_JSON:
		buf_printf(p->to,
			   "\"version\":\"%s\",\"uptime_seconds\":%" PRId64 ",\"accepting\":%s",
			   SLUICE_VERSION, uptime, accepting ? "true" : "false");
		break;
	case METRICS_PROMETHEUS:
		metrics_print_family(p, "build_info", "The program");
		metrics_print_labelled(p, "build_info", "version", SLUICE_VERSION, 1);
		metrics_print_family(p, "uptime_seconds", "Since the relay was started");
		metrics_print_number(p, "uptime_seconds", "", uptime);
		metrics_print_family(p, "accepting", "1 while new mail is accepted");
		metrics_print_number(p, "accepting", "", accepting);
	}
}

/* Two transports may have sites of the same name: what is allowed to it is the sum. */
static int64_t window_of(const struct snapshot *s, int i)
{
	int64_t window = 0;
	for (int k = i; k < s->nsite; k++)
		if (strcmp(s->site[k].name, s->site[i].name) == 0)
			window += s->site[k].window;
	return window;
}

static bool seen_before(const struct snapshot *s, int i)
{
	for (int k = 0; k < i; k++)
		if (strcmp(s->site[k].name, s->site[i].name) == 0)
			return true;
	return false;
}

static void put_sites(const struct metrics_print *p, const struct snapshot *s)
{
	metrics_print_family(p, "destinations", "Sites known");
	metrics_print_number(p, "destinations", "", s->sites);
	metrics_print_family(p, "destinations_dead", "Sites left alone for a while");
	metrics_print_number(p, "destinations_dead", "", s->dead);
	metrics_print_family(p, "destination_window",
			     "Connections that one of the busiest sites may have");
	for (int i = 0; i < s->nsite; i++)
		if (!seen_before(s, i))
			metrics_print_labelled(p, "destination_window", "site", s->site[i].name,
					       window_of(s, i));
}

static void put_logins(const struct metrics_print *p, const struct limiter_top *top)
{
	metrics_print_family(p, "login_messages", "Messages of one of those who sent most today");
	for (int i = 0; i < top->n; i++)
		metrics_print_labelled(p, "login_messages", "login", top->login[i].name,
				       top->login[i].figures.today[LOGIN_MESSAGES]);
}

static void put_flow(const struct metrics_print *p, const struct snapshot_flow *f)
{
	const struct {
		const char *result;
		int64_t n;
	} of_today[] = {{"sent", f->sent}, {"deferred", f->deferred}, {"refused", f->refused}};
	for (size_t i = 0; i < sizeof of_today / sizeof *of_today; i++) {
		struct buf labels = {0};
		metrics_label(&labels, "result", of_today[i].result);
		metrics_label(&labels, "flow", f->name);
		metrics_print_number(p, "flow_recipients", buf_cstr(&labels), of_today[i].n);
		buf_fini(&labels);
	}
}

static void put_flows(const struct metrics_print *p, const struct snapshot_flows *flows)
{
	metrics_print_family(p, "flow_messages",
			     "Messages of one of the busiest flows that are being worked on");
	for (int i = 0; i < flows->n; i++)
		metrics_print_labelled(p, "flow_messages", "flow", flows->flow[i].name,
				       flows->flow[i].messages);
	metrics_print_family(p, "flow_recipients",
			     "Recipients of its mail today, by what became of them");
	for (int i = 0; i < flows->n; i++)
		put_flow(p, &flows->flow[i]);
}

void stats_print(struct buf *to, enum metrics_form form, const struct stats_view *v)
{
	struct metrics_print p = {to, form, v->brief};
	if (form == METRICS_JSON)
		buf_puts(to, "{");
	put_program(&p, v);
	put_conditions(&p);
	metrics_print_all(&p);
	put_sites(&p, v->snapshot);
	if (!v->brief)
		put_flows(&p, &v->snapshot->flows);
	if (v->top && v->top->n > 0)
		put_logins(&p, v->top);
	if (form == METRICS_JSON)
		buf_puts(to, "}\n");
}
