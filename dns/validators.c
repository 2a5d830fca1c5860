/* SPDX-License-Identifier: ISC */
#include "dns/validators.h"

#include "base/keyed_hash.h"
#include "base/mem.h"
#include "base/thread.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS_MAX = 4, LABELS = 2 };

struct validating {
	struct loop *loop;
	struct validator *validator; /* NULL at the end: what comes now goes back unasked */
	bool gives_way;
};

struct validators {
	struct loop *loop; /* dns */
	struct list asked; /* struct validation */
	int n;
	struct validating thread[THREADS_MAX];
};

/* Belongs to dns, then to the thread that validates, then to dns again: but `of` is always for dns alone. */
struct validation_job {
	struct note note;
	struct validator_query query;
	struct loop *reply_to;
	struct validation *of; /* NULL: nobody waits for it any more */
	enum answer_type type;
	char *name, *why;
	void *bytes;
	struct validator_reply reply;
};

/* In the thread that validates. */

static void post_answer(struct validation_job *j)
{
	j->note.type = DNS_VALIDATED;
	loop_post(j->reply_to, &j->note);
}

static void keep_reply(struct validator_query *query, const struct validator_reply *r)
{
	struct validation_job *j = list_entry(query, struct validation_job, query);
	assert(!j->bytes && !j->why); /* it has one answer */
	j->reply = *r;
	if (r->bytes)
		j->reply.bytes = j->bytes = memcpy(mem_alloc(r->len + 1), r->bytes, r->len);
	if (r->why)
		j->reply.why = j->why = mem_strdup(r->why);
	post_answer(j);
}

static void take_question(void *owner, struct note *note)
{
	struct validating *t = owner;
	struct validation_job *j = (struct validation_job *)note;
	assert(note->type == DNS_VALIDATE);
	if (!t->gives_way)
		thread_give_way();
	t->gives_way = true;
	j->reply.event = CHANNEL_CLOSED;
	if (t->validator)
		validator_ask(t->validator, j->name, j->type, &j->query);
	else
		post_answer(j);
}

/* In dns. */

static void end_thread(struct validating *t)
{
	if (t->loop)
		loop_stop(t->loop);
	validator_free(&t->validator);
	loop_free(&t->loop);
}

static bool begin_thread(struct validating *t, int of, const struct conf_dns *conf,
			 const struct trust_anchor *anchor, const union address *server,
			 int nserver)
{
	t->loop = loop_new("dnssec", take_question, NULL, t);
	t->validator = validator_new(t->loop, of, conf, anchor, server, nserver);
	if (t->validator)
		loop_start(t->loop);
	else
		end_thread(t);
	return t->validator != NULL;
}

static int threads_wanted(const struct conf *conf)
{
	int n = thread_workers(conf->workers);
	return n < THREADS_MAX ? n : THREADS_MAX;
}

struct validators *validators_new(struct loop *loop, const struct conf *conf,
				  const struct trust_anchor *anchor, const union address *server,
				  int nserver)
{
	struct validators *v = mem_zalloc(sizeof *v);
	int wanted = threads_wanted(conf);
	v->loop = loop;
	list_init(&v->asked);
	while (v->n < wanted &&
	       begin_thread(&v->thread[v->n], wanted, &conf->dns, anchor, server, nserver))
		v->n++;
	if (v->n == 0)
		validators_free(&v);
	return v;
}

static void finish_validation(struct validation *v, const struct validator_reply *r)
{
	assert(v->job->of == v);
	list_remove(&v->link);
	v->job->of = NULL;
	v->job = NULL;
	v->validated(v, r);
}

void validators_free(struct validators **vp)
{
	struct validators *v = *vp;
	struct list *link;
	if (!v)
		return;
	while ((link = list_first(&v->asked)))
		finish_validation(list_entry(link, struct validation, link),
				  &(struct validator_reply){.event = CHANNEL_CLOSED});
	while (v->n > 0)
		end_thread(&v->thread[--v->n]);
	free(v);
	*vp = NULL;
}

static struct validating *thread_of(struct validators *v, const char *name)
{
	assert(v->n > 0);
	const char *zone = name + strlen(name);
	for (int dots = 0; zone > name; zone--)
		if (zone[-1] == '.' && ++dots == LABELS)
			break;
	return &v->thread[keyed_hash(zone, strlen(zone)) % (unsigned)v->n];
}

void validators_ask(struct validators *v, const char *name, enum answer_type type,
		    struct validation *asker)
{
	assert(loop_is_ours(v->loop));
	assert(!asker->job && asker->validated);
	struct validation_job *j = mailbox_note(sizeof *j, DNS_VALIDATE);
	j->query.validated = keep_reply;
	j->reply_to = v->loop;
	j->of = asker;
	j->type = type;
	j->name = mem_strdup(name);
	asker->job = j;
	list_init(&asker->link);
	list_append(&v->asked, &asker->link);
	loop_post(thread_of(v, name)->loop, &j->note);
}

void validators_take_answer(struct note *note)
{
	struct validation_job *j = (struct validation_job *)note;
	assert(note->type == DNS_VALIDATED);
	if (j->of)
		finish_validation(j->of, &j->reply);
	free(j->name);
	free(j->bytes);
	free(j->why);
	free(j);
}
