/* SPDX-License-Identifier: ISC */
#include "smtpc/smtpc.h"

#include "base/mem.h"
#include "base/thread.h"
#include "smtpc/secrets.h"
#include "smtpc/worker.h"

#include <assert.h>
#include <stdlib.h>

struct smtpc {
	int n;
	struct worker **worker;
	struct secrets *secrets;
};

struct smtpc *smtpc_new(struct conf *conf)
{
	struct smtpc *s = mem_zalloc(sizeof *s);
	s->n = thread_workers(conf->workers);
	s->secrets = secrets_new(conf->spool);
	s->worker = mem_zalloc((size_t)s->n * sizeof(struct worker *));
	for (int i = 0; i < s->n; i++)
		s->worker[i] = worker_new(i, s->secrets);
	return s;
}

void smtpc_start(struct smtpc *s)
{
	secrets_start(s->secrets);
	for (int i = 0; i < s->n; i++)
		worker_start(s->worker[i]);
}

void smtpc_part(struct smtpc *s)
{
	for (int i = 0; i < s->n; i++) {
		struct note *note = mem_zalloc(sizeof *note);
		note->type = WORKER_PART;
		loop_post(s->worker[i]->loop, note);
	}
}

void smtpc_stop(struct smtpc *s)
{
	for (int i = 0; i < s->n; i++)
		worker_stop(s->worker[i]);
	secrets_stop(s->secrets);
}

void smtpc_free(struct smtpc **sp)
{
	struct smtpc *s = *sp;
	if (!s)
		return;
	smtpc_stop(s);
	secrets_free(&s->secrets); /* it posts to the workers */
	for (int i = 0; i < s->n; i++)
		worker_free(&s->worker[i]);
	free(s->worker);
	free(s);
	*sp = NULL;
}

int smtpc_workers(const struct smtpc *s)
{
	return s->n;
}

struct loop *smtpc_worker(struct smtpc *s, int worker)
{
	assert(worker >= 0 && worker < s->n);
	return s->worker[worker]->loop;
}
