/* SPDX-License-Identifier: ISC */
#include "stages/stages.h"

#include "base/mem.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

struct passage *passage_new(struct conf *conf, struct loop *loop, struct thread_pool *pool,
			    struct spool *spool, uint64_t id)
{
	struct passage *p = mailbox_note(sizeof *p, PASSAGE_RESUME);
	p->magic = PASSAGE_MAGIC;
	p->conf = conf_ref(conf);
	p->loop = loop;
	p->pool = pool;
	draft_init(&p->draft, spool, id);
	return p;
}

static void destroy_passage(struct passage *p)
{
	magic_check(p, PASSAGE_MAGIC);
	assert(!p->given && !p->at_work && !p->running);
	draft_fini(&p->draft);
	conf_unref(p->conf);
	free(p->own);
	free(p->login);
	free(p->client);
	free(p->signed_by);
	free(p->reply);
	magic_free(p);
}

void passage_free(struct passage **pp)
{
	struct passage *p = mem_take(pp);
	if (p)
		destroy_passage(p);
}

void passage_add(struct passage *p, const struct passage_stage *kind, void *context)
{
	assert(p->nstage < PASSAGE_STAGES_MAX && !p->running && !p->ready);
	assert(p->end == PASSAGE_UNDER_WAY && p->at == 0);
	p->stage[p->nstage].kind = kind;
	p->stage[p->nstage].context = context;
	p->nstage++;
}

void *passage_context(const struct passage *p)
{
	assert(p->at < p->nstage);
	return p->stage[p->at].context;
}

static const struct passage_stage *at_work(const struct passage *p)
{
	return p->at < p->nstage ? p->stage[p->at].kind : NULL;
}

static void cancel_stage(struct passage *p)
{
	const struct passage_stage *kind = at_work(p);
	if (kind && kind->cancel && p->at_work)
		kind->cancel(p);
	p->at_work = NULL;
}

static void settle_draft(struct passage *p)
{
	p->error = draft_settle(&p->draft) ? 0 : errno;
}

static void note_settled(struct passage *p)
{
	p->end = p->error ? PASSAGE_FAILED : PASSAGE_DONE;
}

/* A large message is copied: not by a loop that serves others. */
static void settle_all(struct passage *p)
{
	assert(p->at == p->nstage && !p->given);
	if (draft_settles_slowly(&p->draft)) {
		if (!passage_give(p, settle_draft))
			passage_fail(p, ECANCELED);
		return;
	}
	settle_draft(p);
	note_settled(p);
}

static bool advance_passage(struct passage *p)
{
	while (p->ready && p->end == PASSAGE_UNDER_WAY) {
		p->ready = false;
		if (p->at < p->nstage)
			p->stage[p->at].kind->begin(p);
		else
			settle_all(p);
	}
	return p->end != PASSAGE_UNDER_WAY;
}

/* The word of a stage comes here: while stages are being run below, that is gone on with there. */
static void go_on(struct passage *p)
{
	if (p->running)
		return;
	p->running = true;
	bool over = advance_passage(p);
	p->running = false;
	if (over)
		p->ended(p);
}

static void end_passage(struct passage *p, enum passage_end how, const char *reply)
{
	assert(how != PASSAGE_UNDER_WAY && how != PASSAGE_DONE && !p->reply);
	assert(!p->loop || loop_is_ours(p->loop));
	assert(p->end == PASSAGE_UNDER_WAY && !p->given);
	p->end = how;
	p->reply = mem_strdup(reply);
	p->at_work = NULL;
	go_on(p);
}

void passage_next(struct passage *p)
{
	assert(p->at < p->nstage && !p->ready && !p->given && p->end == PASSAGE_UNDER_WAY);
	assert(!p->loop || loop_is_ours(p->loop));
	p->at++;
	p->at_work = NULL;
	p->ready = true;
	go_on(p);
}

void passage_refuse(struct passage *p, const char *reply)
{
	assert(reply);
	end_passage(p, PASSAGE_REFUSED, reply);
}

void passage_discard(struct passage *p, const char *why)
{
	assert(why);
	end_passage(p, PASSAGE_DISCARDED, why);
}

void passage_fail(struct passage *p, int error)
{
	p->error = error ? error : EIO;
	end_passage(p, PASSAGE_FAILED, NULL);
}

static void tell_stage(struct passage *p, bool done)
{
	if (!done) {
		cancel_stage(p);
		passage_fail(p, ECANCELED);
	} else if (at_work(p)) {
		at_work(p)->worked(p);
	} else {
		note_settled(p);
		go_on(p);
	}
}

static struct passage *of_job(struct thread_pool_job *job)
{
	struct passage *p = (struct passage *)((char *)job - offsetof(struct passage, job));
	magic_check(p, PASSAGE_MAGIC);
	return p;
}

static void do_work(struct thread_pool_job *job)
{
	struct passage *p = of_job(job);
	p->work(p);
}

static void work_done(struct thread_pool_job *job)
{
	struct passage *p = of_job(job);
	loop_post(p->loop, &p->note);
}

bool passage_give(struct passage *p, void (*what)(struct passage *))
{
	assert(!p->given && p->end == PASSAGE_UNDER_WAY);
	assert(p->at == p->nstage || p->stage[p->at].kind->worked);
	if (!p->loop) {
		what(p); /* this is a thread of the pool */
		tell_stage(p, true);
		return true;
	}
	p->work = what;
	p->job.work = do_work;
	p->job.done = work_done;
	p->job.brief = !p->draft.file;
	p->given = p->pool && thread_pool_give_always(p->pool, &p->job);
	return p->given;
}

void passage_resume(struct passage *p)
{
	magic_check(p, PASSAGE_MAGIC);
	assert(p->given && loop_is_ours(p->loop));
	p->given = false;
	if (p->cancelled) {
		cancel_stage(p);
		destroy_passage(p);
		return;
	}
	tell_stage(p, p->job.worked);
}

static void work_off(struct passage *p)
{
	p->running = true;
	bool over = advance_passage(p);
	p->running = false;
	assert(over);
}

static void worked_off(struct thread_pool_job *job)
{
	struct passage *p = of_job(job);
	if (!job->worked)
		p->end = PASSAGE_FAILED;
	p->ended(p);
}

static bool run_in_pool(struct passage *p)
{
	p->work = work_off;
	p->job.work = do_work;
	p->job.done = worked_off;
	if (thread_pool_give_always(p->pool, &p->job))
		return false;
	p->end = PASSAGE_FAILED;
	return true;
}

bool passage_run(struct passage *p, void (*ended)(struct passage *), void *owner)
{
	assert(!p->ended && !p->running && !p->ready && ended);
	assert(p->end == PASSAGE_UNDER_WAY && p->at == 0);
	p->ended = ended;
	p->owner = owner;
	p->ready = true;
	if (!p->loop)
		return run_in_pool(p);
	p->running = true;
	bool over = advance_passage(p);
	p->running = false;
	return over;
}

enum passage_end passage_run_here(struct passage *p)
{
	assert(!p->loop && !p->ended && !p->running);
	p->ready = true;
	work_off(p);
	return p->end;
}

void passage_cancel(struct passage **pp)
{
	struct passage *p = mem_take(pp);
	if (!p)
		return;
	assert(p->loop && !p->running && p->end == PASSAGE_UNDER_WAY);
	p->cancelled = true;
	if (p->given)
		return;
	cancel_stage(p);
	destroy_passage(p);
}
