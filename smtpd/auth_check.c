/* SPDX-License-Identifier: ISC */
#include "smtpd/auth_check.h"

#include "base/mem.h"

#include <stddef.h>
#include <stdlib.h>

static struct auth_check *of_job(struct thread_pool_job *job)
{
	return (struct auth_check *)((char *)job - offsetof(struct auth_check, job));
}

static void check_password(struct thread_pool_job *job)
{
	struct auth_check *c = of_job(job);
	bool right = user_value_check(&c->user, c->password);
	c->right = right && c->known;
	c->done = true;
}

static void answer_worker(struct thread_pool_job *job)
{
	wait_answer_post(&of_job(job)->answer);
}

static void free_auth_check(struct auth_check *c)
{
	user_value_fini(&c->user);
	mem_free_secret(c->password);
	free(c);
}

static void free_answer(struct wait_answer *a)
{
	free_auth_check((struct auth_check *)a);
}

struct auth_check *auth_check_new(struct loop *reply_to)
{
	struct auth_check *c = mem_zalloc(sizeof *c);
	c->answer.reply_to = reply_to;
	c->answer.free = free_answer;
	c->job.work = check_password;
	c->job.done = answer_worker;
	return c;
}

bool auth_check_give(struct thread_pool *pool, struct auth_check *c)
{
	if (pool && thread_pool_give(pool, &c->job))
		return true;
	free_auth_check(c);
	return false;
}
