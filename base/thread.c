/* SPDX-License-Identifier: ISC */
#include "base/thread.h"

#include "base/mem.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

struct beginning {
	const char *name;
	void *(*run)(void *);
	void *argument;
};

static void (*prepare_thread)(void);

void thread_prepare(void (*prepare)(void))
{
	prepare_thread = prepare;
}

int thread_workers(int64_t wanted)
{
	if (wanted > 0)
		return (int)wanted;
	long n = sysconf(_SC_NPROCESSORS_ONLN);
	return n > 0 ? (int)n : 1;
}

void thread_give_way(void)
{
	/* On Linux that is of the one thread. What it fails to do costs little. */
	setpriority(PRIO_PROCESS, (id_t)gettid(), THREAD_NICENESS);
}

static void *begin_thread(void *argument)
{
	struct beginning b = *(struct beginning *)argument;
	free(argument);
	pthread_setname_np(pthread_self(), b.name);
	if (prepare_thread)
		prepare_thread();
	return b.run(b.argument);
}

int thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *argument)
{
	assert(strlen(name) <= 15 && run);
	sigset_t all, before;
	struct beginning *b = mem_alloc(sizeof *b);
	*b = (struct beginning){name, run, argument};
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	int error = pthread_create(thread, NULL, begin_thread, b);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error)
		free(b);
	return error;
}

void thread_need(pthread_t *thread, const char *name, void *(*run)(void *), void *argument)
{
	int error = thread_start(thread, name, run, argument);
	if (error == 0)
		return;
	fprintf(stderr,
		"sluice: no thread for %s: %s (ulimit -u and -v, TasksMax and LimitAS of the unit, "
		"pids.max)\n",
		name, strerror(error));
	_exit(EXIT_FAILURE);
}
