/* neighbours.h - the spool and the scheduler as those who ask them see them: each question is
 * answered at once, with two messages, a site, a host, a flow and a table.
 *
 * THREAD     The test's: neighbours_turn() is what both would do.
 */
#ifndef TESTS_FUZZ_NEIGHBOURS_H
#define TESTS_FUZZ_NEIGHBOURS_H

#include "base/mem.h"
#include "qmgr/dest_command.h"
#include "qmgr/explain.h"
#include "qmgr/flow_command.h"
#include "qmgr/qmgr.h"
#include "qmgr/snapshot.h"
#include "smtpd/limiter.h"
#include "spool/domains.h"
#include "spool/sample.h"
#include "spool/shape.h"
#include "spool/spool.h"
#include "spool/stub.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { NEIGHBOURS_FIRST_ID = 1 << 20, NEIGHBOURS_MESSAGES = 2 };

static struct loop *neighbours;

static struct spool_row neighbours_row(uint64_t id)
{
	static const char text[] = "Subject: \"<&>\\\r\n\r\n\xc3\xa9 \x1b body\r\n";
	struct spool_row row = {.queue = id & 1 ? SPOOL_HOLD : SPOOL_DEFERRED};
	row.envelope = envelope_new();
	row.envelope->id = id;
	row.envelope->sender = mem_strdup(id & 1 ? "" : "\"<s>\"@x.test");
	row.envelope->size = strlen(text);
	struct recipient *r = envelope_add(row.envelope, "a@example.test");
	r->last = verdict_new(VERDICT_DEFERRED, 450, "4.2.0", "mx.test", "</script> later \x1b");
	envelope_add(row.envelope, "b@other.test")->done = true;
	row.content = content_in_memory(mem_strdup(text), strlen(text));
	return row;
}

static void neighbours_fill(struct spool_command *c)
{
	c->row = mem_zalloc(NEIGHBOURS_MESSAGES * sizeof *c->row);
	for (uint64_t id = NEIGHBOURS_FIRST_ID; id < NEIGHBOURS_FIRST_ID + NEIGHBOURS_MESSAGES;
	     id++)
		if (c->id ? id == c->id : id > c->after && c->nrow < c->limit)
			c->row[c->nrow++] = neighbours_row(id);
	if (c->nrow > 0)
		c->after = c->row[c->nrow - 1].envelope->id; /* the last that was looked at */
}

static void neighbours_draw(struct shape *s)
{
	struct domains d;
	struct stub stub = {0};
	struct spool_row row = neighbours_row(NEIGHBOURS_FIRST_ID);
	assert(s->buckets >= 1 && s->buckets <= SHAPE_BUCKETS_MAX && s->first_ms >= 1);
	domains_init(&d);
	domains_set(&d, &stub, row.envelope);
	shape_begin(s, &d);
	shape_add(s, domains_sender(&stub), 1000, 3);
	shape_add(s, domains_sender(&stub), INT64_C(1) << 50, 1);
	shape_end(s, &d);
	domains_drop(&d, &stub);
	domains_fini(&d);
	envelope_free(&row.envelope);
	content_unref(row.content);
}

static void neighbours_sample(struct sample *s)
{
	s->row = mem_zalloc(NEIGHBOURS_MESSAGES * sizeof *s->row);
	for (; s->n < NEIGHBOURS_MESSAGES; s->n++) {
		struct spool_row row = neighbours_row(NEIGHBOURS_FIRST_ID + (uint64_t)s->n);
		s->row[s->n] = (struct sample_row){
			.queue = row.queue, .envelope = row.envelope, .stands_for = 1000};
		content_unref(row.content);
		s->fit += 1000;
	}
}

static void neighbours_answer_spool(struct spool_command *c)
{
	if (c->op == SPOOL_LIST || c->op == SPOOL_SHOW)
		neighbours_fill(c);
	else if (c->op == SPOOL_SHAPE)
		neighbours_draw(c->shape);
	else if (c->op == SPOOL_SAMPLE)
		neighbours_sample(c->sample);
	else
		c->affected = c->id ? c->id % 2 : NEIGHBOURS_MESSAGES;
	loop_post(c->reply_to, &c->note);
}

static void neighbours_answer_dest(struct dest_command *c)
{
	c->found = !c->name || strcmp(c->name, "example.test") == 0;
	c->nsite = c->found;
	c->site = mem_zalloc(sizeof *c->site);
	*c->site =
		(struct dest_site){.name = mem_strdup("example.test"),
				   .transport = mem_strdup("smtp"),
				   .state = "alive",
				   .window = 5,
				   .number = 3,
				   .last = verdict_new(VERDICT_DEFERRED, 0, NULL, "", "\"x\" <")};
	if (!c->found) {
		free(c->site->name);
		free(c->site->transport);
		verdict_unref(c->site->last);
	}
	loop_post(c->reply_to, &c->note);
}

static void neighbours_answer_user(struct limiter_order *o)
{
	o->found = !o->name || strcmp(o->name, "ann") == 0;
	o->n = o->found;
	o->login = mem_zalloc(sizeof *o->login);
	if (o->found)
		*o->login = (struct limiter_login){.name = mem_strdup("ann \"\xc3\xa9"),
						   .figures = {.today = {3}},
						   .limit = {{5, 1000}, {0, 0}},
						   .room = {2, 0}};
	loop_post(o->reply_to, &o->note);
}

static void neighbours_answer_flow(struct flow_command *c)
{
	c->found = !c->name || strcmp(c->name, "ann") == 0;
	c->nrow = c->found;
	c->row = mem_zalloc(sizeof *c->row);
	if (c->found)
		*c->row = (struct flow_row){.name = mem_strdup("ann \"\xc3\xa9"),
					    .suspended = true,
					    .until_ms = INT64_C(1) << 50,
					    .weight = 7,
					    .transport = mem_strdup("</script>"),
					    .today = {.sent = 3, .deferred = 1}};
	loop_post(c->reply_to, &c->note);
}

static void neighbours_hear(void *owner, struct note *note)
{
	(void)owner;
	if (note->type == SPOOL_COMMAND) {
		neighbours_answer_spool((struct spool_command *)note);
	} else if (note->type == DEST_COMMAND) {
		neighbours_answer_dest((struct dest_command *)note);
	} else if (note->type == LIMITER_ORDER) {
		neighbours_answer_user((struct limiter_order *)note);
	} else if (note->type == FLOW_COMMAND) {
		neighbours_answer_flow((struct flow_command *)note);
	} else if (note->type == QMGR_EXPLAIN) {
		loop_post(((struct explain_question *)note)->reply_to, note);
	} else {
		assert(note->type == QMGR_SNAPSHOT);
		loop_post(((struct snapshot *)note)->reply_to, note);
	}
}

static void neighbours_begin(void)
{
	neighbours = loop_new("neighbours", neighbours_hear, NULL, NULL);
}

static bool neighbours_turn(void)
{
	return mailbox_drain(&neighbours->mailbox);
}

#endif
