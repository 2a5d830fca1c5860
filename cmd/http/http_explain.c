/* SPDX-License-Identifier: ISC */
/* /api/explain: the scheduler is asked first, and the queue about a message that it does not have. */
#include "base/clock.h"
#include "base/ident.h"
#include "cmd/text/explain_print.h"
#include "cmd/http/http_ask.h"

#include <assert.h>

static void take_explanation(struct asker *asker, struct note *note);

static void finish_ask(struct http_ask *a)
{
	if (buf_len(&a->out) > 0)
		http_ask_done(a, MHD_HTTP_OK);
	else
		http_ask_refuse(a, MHD_HTTP_NOT_FOUND,
				"no such message in the queue, and no site that mail is being "
				"worked on for");
}

static void take_message(struct asker *asker, struct note *note)
{
	struct http_ask *a = (struct http_ask *)asker;
	struct spool_command *c = (struct spool_command *)note;
	if (!http_ask_arrived(a)) {
		spool_command_free(&c);
		return;
	}
	struct explain_question *x =
		c->nrow > 0 ? explain_print_asks(&c->row[0], a->http->loop, &a->asker) : NULL;
	if (x) {
		assert(!a->shown);
		a->shown = c;
		http_ask_post(a, a->http->qmgr, &x->note, take_explanation);
		return;
	}
	if (c->nrow > 0)
		explain_print_spooled(&a->out, &c->row[0], NULL, true, clock_wall_ms());
	if (c->nrow == 0 && c->error)
		http_ask_unreadable(a, c->error);
	else
		finish_ask(a);
	spool_command_free(&c);
}

static void ask_spool(struct http_ask *a)
{
	struct spool_command *c = spool_command_new(SPOOL_SHOW, a->http->loop, &a->asker);
	c->id = a->id;
	http_ask_post(a, spool_loop(a->http->spool), &c->note, take_message);
}

static void take_explanation(struct asker *asker, struct note *note)
{
	struct http_ask *a = (struct http_ask *)asker;
	struct explain_question *x = (struct explain_question *)note;
	if (http_ask_arrived(a)) {
		if (a->shown)
			explain_print_spooled(&a->out, &a->shown->row[0], x, true, clock_wall_ms());
		else
			explain_print(&a->out, x, true, clock_wall_ms());
		if (buf_len(&a->out) == 0 && a->id && !a->shown)
			ask_spool(a);
		else
			finish_ask(a);
	}
	explain_question_free(&x);
}

void http_ask_explain(struct http_ask *a)
{
	const char *id = MHD_lookup_connection_value(a->connection, MHD_GET_ARGUMENT_KIND, "id");
	const char *site =
		MHD_lookup_connection_value(a->connection, MHD_GET_ARGUMENT_KIND, "site");
	if (!id == !site || (id && (!ident_parse(id, &a->id) || a->id == 0))) {
		http_ask_refuse(a, MHD_HTTP_BAD_REQUEST, "one id or site is wanted");
		return;
	}
	struct explain_question *x = explain_question_new(a->id, site, a->http->loop, &a->asker);
	http_ask_post(a, a->http->qmgr, &x->note, take_explanation);
}
