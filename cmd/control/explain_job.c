/* SPDX-License-Identifier: ISC */
#include "cmd/control/explain_job.h"

#include "base/clock.h"
#include "base/ident.h"
#include "base/magic.h"
#include "base/mem.h"
#include "base/name_key.h"
#include "cmd/cmd.h"
#include "cmd/control/order_job.h"
#include "cmd/control/explain_domain.h"
#include "cmd/text/explain_print.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { EXPLAIN_JOB_MAGIC = 0xe8b1a10b };

struct explain_job {
	unsigned magic;
	struct request *request; /* NULL: the client has gone */
	struct loop *loop, *qmgr, *spool;
	char *what;  /* NULL: all of the flow's */
	char *flow;  /* only of its mail; or NULL */
	uint64_t id; /* that it may be, or 0 */
	bool json;
	bool as_site;	 /* no such message: it may be a site */
	struct buf said; /* of the site, by the scheduler; what the queue has comes behind it */
	struct explain_domain *domain; /* what the queue has for it, or NULL */
	uint64_t after;		       /* of its messages, the last that was looked at */
	int64_t looked;		       /* how many were */
	struct queue_unread unread;    /* of the rest of them */
	int error; /* why the message, which is there, can't be read, an errno; or 0 */
	struct spool_command
		*shown; /* the message, while the scheduler is asked about its site; or NULL */
};

enum {
	DOMAIN_ROWS = 2000,	  /* messages of a domain that are looked at in one step */
	DOMAIN_ROWS_MAX = 100000, /* in all */
};

static void job_free(struct explain_job *j)
{
	buf_fini(&j->said);
	spool_command_free(&j->shown);
	explain_domain_free(&j->domain);
	free(j->what);
	free(j->flow);
	magic_free(j);
}

static void refuse_job(struct explain_job *j)
{
	struct request *r = j->request;
	order_job_has_read(r, &j->unread);
	if (j->error)
		control_complain(r, "sluice: %s: cannot be read from the queue: %s\n", j->what,
				 queue_print_error(j->error));
	else
		control_complain(
			r, "sluice: %s: %s\n", j->what ? j->what : j->flow,
			j->flow ? "no mail of this flow is being worked on there; sluice queue "
				  "list "
				  "--flow lists what is deferred or held"
				: "no such message in the queue, and no site that mail is being "
				  "worked on for");
	control_finish(r, STATUS_REFUSED);
}

static void finish_job(struct explain_job *j, struct buf *out)
{
	struct request *r = j->request;
	if (r && buf_len(out) > 0) {
		control_say(r, buf_data(out), buf_len(out));
		control_finish(r, order_job_has_read(r, &j->unread) ? STATUS_DONE : STATUS_REFUSED);
	} else if (r) {
		refuse_job(j);
	}
	job_free(j);
	buf_fini(out);
}

static void ask_qmgr(struct explain_job *j)
{
	struct explain_question *x = explain_question_new(j->as_site ? 0 : j->id,
							  j->as_site ? j->what : NULL, j->loop, j);
	x->flow = mem_strdup(j->flow);
	loop_post(j->qmgr, &x->note);
}

/* The message; or what the queue has for the domain. */
static void ask_spool(struct explain_job *j)
{
	struct spool_command *c =
		spool_command_new(j->as_site ? SPOOL_LIST : SPOOL_SHOW, j->loop, NULL);
	if (j->as_site) {
		c->domain = name_key(j->what);
		c->after = j->after;
		c->limit = DOMAIN_ROWS;
	} else {
		c->id = j->id;
	}
	c->owner = j;
	c->asker = CONTROL_ASKS_EXPLAIN;
	loop_post(j->spool, &c->note);
}

void explain_job_answer(struct explain_question *x)
{
	struct explain_job *j = x->owner;
	magic_check(j, EXPLAIN_JOB_MAGIC);
	struct buf out = {0};
	if (j->shown) {
		explain_print_spooled(&out, &j->shown->row[0], x, j->json, clock_wall_ms());
		explain_question_free(&x);
		finish_job(j, &out);
		return;
	}
	explain_print(&out, x, j->json, clock_wall_ms());
	bool by_id = x->id != 0;
	explain_question_free(&x);
	if (!by_id && j->flow) {
		finish_job(j, &out);
	} else if (j->request && !by_id) {
		buf_append(&j->said, buf_data(&out), buf_len(&out));
		buf_fini(&out);
		ask_spool(j);
	} else if (buf_len(&out) == 0 && j->request) {
		ask_spool(j);
	} else {
		finish_job(j, &out);
	}
}

/* The scheduler's view of a site, then the mail in the queue for the domain of that name. Of a domain
 * without any mail that much is said. */
static void finish_domain(struct explain_job *j)
{
	struct buf out = {0};
	buf_append(&out, buf_data(&j->said), buf_len(&j->said));
	explain_domain_print(&out, j->domain, j->json, clock_wall_ms());
	if (buf_len(&out) == 0 && strpbrk(j->what, ".:["))
		explain_domain_nothing(&out, j->what, j->json);
	finish_job(j, &out);
}

/* The rest of them is asked for step by step, so that mail does not wait for it. */
static void add_to_domain(struct explain_job *j, const struct spool_command *c)
{
	assert(j->what && c->nrow <= DOMAIN_ROWS);
	bool more = c->nrow == DOMAIN_ROWS;
	if (!j->domain)
		j->domain = explain_domain_new(j->what);
	explain_domain_add(j->domain, c);
	queue_unread_add(&j->unread, c);
	j->looked += c->nrow;
	if (more)
		j->after = c->row[c->nrow - 1].envelope->id;
	if (more && j->request && j->looked < DOMAIN_ROWS_MAX) {
		ask_spool(j);
		return;
	}
	if (more)
		explain_domain_cut(j->domain);
	finish_domain(j);
}

/* The message, unless it is another flow's. */
static const struct spool_row *wanted_row(const struct explain_job *j,
					  const struct spool_command *c)
{
	bool wanted = c->nrow > 0 &&
		      (!j->flow || name_key_same(j->flow, envelope_flow(c->row[0].envelope)));
	return wanted ? &c->row[0] : NULL;
}

void explain_job_shown(struct spool_command *c)
{
	struct explain_job *j = c->owner;
	magic_check(j, EXPLAIN_JOB_MAGIC);
	struct buf out = {0};
	assert(!j->shown);
	if (j->as_site) {
		add_to_domain(j, c);
		spool_command_free(&c);
		return;
	}
	const struct spool_row *row = wanted_row(j, c);
	struct explain_question *x = row ? explain_print_asks(row, j->loop, j) : NULL;
	if (x) {
		j->shown = c;
		loop_post(j->qmgr, &x->note);
		return;
	}
	if (row)
		explain_print_spooled(&out, row, NULL, j->json, clock_wall_ms());
	bool found = row;
	j->error = c->error;
	spool_command_free(&c);
	if (!found && !j->error && j->request) {
		j->as_site = true;
		ask_qmgr(j);
	} else {
		finish_job(j, &out);
	}
}

/* The words behind "explain": --json, --flow NAME, and what is asked about, which a flow may do without. */
static bool take_words(struct explain_job *j, const struct request *r)
{
	for (int i = 1; i < r->argc; i++) {
		if (strcmp(r->argv[i], "--json") == 0 && !j->json)
			j->json = true;
		else if (strcmp(r->argv[i], "--flow") == 0 && !j->flow && i + 1 < r->argc)
			j->flow = mem_strdup(r->argv[++i]);
		else if (!j->what)
			j->what = mem_strdup(r->argv[i]);
		else
			return false;
	}
	return j->what || j->flow;
}

void explain_job_start(struct request *r, struct loop *loop, struct loop *qmgr, struct loop *spool)
{
	struct explain_job *j = mem_zalloc(sizeof *j);
	j->magic = EXPLAIN_JOB_MAGIC;
	j->loop = loop;
	j->qmgr = qmgr;
	j->spool = spool;
	if (!take_words(j, r)) {
		job_free(j);
		control_complain(r, "sluice: explain wants one id or site\n");
		control_finish(r, STATUS_USAGE);
		return;
	}
	j->as_site = !j->what || !ident_parse(j->what, &j->id) || j->id == 0;
	control_lend(r, &j->request);
	ask_qmgr(j);
}
