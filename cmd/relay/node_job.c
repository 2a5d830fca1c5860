/* SPDX-License-Identifier: ISC */
#include "cmd/relay/node_job.h"

#include "cmd/cmd.h"
#include "cmd/relay/server.h"
#include "cmd/text/node_print.h"

#include <string.h>

static const struct {
	const char *word;
	enum node_op op;
	bool named;
} verbs[] = {{"adopt", NODE_ADOPT, true},
	     {"retire", NODE_RETIRE, true},
	     {"drain", NODE_MAY_DRAIN, false}};

/* The order is carried out without the client that gave it. */
static void forget_client(struct request *r)
{
	struct node_order *o = r->job;
	o->owner = NULL;
}

static void refuse_request(struct request *r, const char *why)
{
	control_complain(r, "sluice: node: %s\n", why);
	control_finish(r, STATUS_REFUSED);
}

static bool is_list(const struct request *r, bool *json)
{
	*json = r->argc == 3 && strcmp(r->argv[2], "--json") == 0;
	return r->argc == 2 + *json && strcmp(r->argv[1], "list") == 0;
}

/* The last words of both engines. */
static void list_nodes(const struct server *s, struct request *r, bool json)
{
	struct buf out = {0};
	struct node_rows all;
	if (!s->nodes && !s->epochs) {
		refuse_request(r, "this node is alone, or has only just begun");
		return;
	}
	node_rows_init(&all, s->nodes, s->epochs);
	(json ? node_print_json : node_print_list)(&out, &all);
	node_rows_fini(&all);
	control_say(r, buf_data(&out), buf_len(&out));
	buf_fini(&out);
	control_finish(r, STATUS_DONE);
}

/* False: there is no such order. */
static bool give_order(struct server *s, struct request *r)
{
	for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
		if (r->argc != 2 + verbs[i].named || strcmp(r->argv[1], verbs[i].word) != 0)
			continue;
		struct node_order *o =
			node_order_new(verbs[i].op, verbs[i].named ? r->argv[2] : NULL, s->loop, r);
		r->job = o;
		r->gone = forget_client;
		node_post(s->node, o);
		return true;
	}
	return false;
}

void node_job_start(struct server *s, struct request *r)
{
	bool json;
	if (!cluster_built())
		refuse_request(r, "this sluice was built without its cluster");
	else if (is_list(r, &json))
		list_nodes(s, r, json);
	else if (!s->node)
		refuse_request(
			r, "this relay keeps no copy of its queue: cluster { replicate } is off");
	else if (!give_order(s, r))
		refuse_request(r, "that is no order");
}

static void answer_client(struct request *r, struct node_order *o)
{
	r->gone = NULL;
	if (o->done)
		control_say(r, buf_data(&o->says), buf_len(&o->says));
	else
		control_complain(r, "sluice: node: %s", buf_cstr(&o->says));
	control_finish(r, o->done ? STATUS_DONE : STATUS_REFUSED);
}

/* Whether its queue is handed over shows when all else has ended. */
static void drain_queue(struct server *s, struct request *r)
{
	if (s->drainer) {
		r->gone = NULL;
		refuse_request(r, "it is being drained already");
		return;
	}
	control_lend(r, &s->drainer);
	if (node_drains(s->node))
		return;
	node_drain(s->node);
	ending_now(s);
}

void node_job_answer(struct server *s, struct node_order *o)
{
	if (o->owner && o->op == NODE_MAY_DRAIN && o->done)
		drain_queue(s, o->owner);
	else if (o->owner)
		answer_client(o->owner, o);
	node_order_free(&o);
}

void node_job_drained(struct server *s, const char *why_not)
{
	struct request *r = s->drainer;
	s->drainer = NULL;
	if (!r)
		return;
	r->gone = NULL;
	if (why_not)
		control_complain(r,
				 "sluice: node: the relay has stopped, and keeps its queue: %s\n",
				 why_not);
	control_finish_last(r, why_not ? STATUS_REFUSED : STATUS_DONE);
}

/* A fault that keeps it from starting again is logged; then whoever watches over it starts it. */
void node_job_lost(struct server *s)
{
	struct buf says = {0};
	if (s->ending.state == ENDING_NONE && !ending_restart(s, &says)) {
		s->ending.failed = true;
		ending_now(s);
	}
	buf_fini(&says);
}
