/* SPDX-License-Identifier: ISC */
#include "base/loop_turn.h"

#include "base/log.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

enum { TOLD_AGAIN_US = 1000000 };

static atomic_llong slow_us;

/* Threads of which there is one name; all others are "other". */
static const struct {
	const char *thread;
	enum metric_histogram histogram;
} threads[] = {
	{"main", HISTOGRAM_turn_main},	 {"smtpd", HISTOGRAM_turn_smtpd},
	{"spool", HISTOGRAM_turn_spool}, {"qmgr", HISTOGRAM_turn_qmgr},
	{"smtpc", HISTOGRAM_turn_smtpc},
};

static const char *family_of(int type)
{
	static const char *const names[] = {
#define N(family) #family,
		NOTE_FAMILIES(N)
#undef N
	};
	size_t family = (size_t)(type - 1) >> 8;
	return family < sizeof names / sizeof *names ? names[family] : "other";
}

void loop_turn_log_slower(int64_t than_ms)
{
	atomic_store_explicit(&slow_us, than_ms * 1000, memory_order_relaxed);
}

bool loop_turn_is_slow(int64_t took_us)
{
	int64_t limit_us = atomic_load_explicit(&slow_us, memory_order_relaxed);
	return limit_us > 0 && took_us > limit_us;
}

/* Of this thread, since it began. */
static int64_t processor_us_so_far(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* Workers have a number behind their name. */
static enum metric_histogram histogram_of(const char *thread)
{
	for (size_t i = 0; i < sizeof threads / sizeof *threads; i++)
		if (strncmp(thread, threads[i].thread, strlen(threads[i].thread)) == 0)
			return threads[i].histogram;
	return HISTOGRAM_turn_other;
}

void loop_turn_init(struct loop_turn *t, const char *thread, struct mailbox *m)
{
	*t = (struct loop_turn){.thread = thread,
				.mailbox = m,
				.histogram = histogram_of(thread),
				.processor_us = -1};
}

void loop_turn_begin(struct loop_turn *t, int64_t now_us)
{
	t->began_us = now_us;
	t->mailbox->turn = (struct mailbox_turn){.notes = 0};
	t->mailbox->timed = atomic_load_explicit(&slow_us, memory_order_relaxed) > 0;
	t->processor_us = t->mailbox->timed ? processor_us_so_far() : -1;
}

static void log_slow_turn(struct loop_turn *t, int64_t took_us, int64_t now_us)
{
	const struct mailbox_turn *got = &t->mailbox->turn;
	bool asked = t->processor_us >= 0, timed = got->longest_us > 0;
	log_event(LOG_LEVEL_WARNING, "slow", "thread", t->thread, "what", "turn", "seconds",
		  log_seconds(took_us / 1000), "processor",
		  asked ? log_seconds((processor_us_so_far() - t->processor_us) / 1000) : NULL,
		  "notes", log_number(got->notes), "longest",
		  timed ? family_of(got->longest) : NULL, "longest_seconds",
		  timed ? log_seconds(got->longest_us / 1000) : NULL, "more",
		  t->untold > 0 ? log_number(t->untold) : NULL, NULL);
	t->told_us = now_us;
	t->untold = 0;
}

bool loop_turn_end(struct loop_turn *t, int64_t now_us)
{
	if (t->began_us == 0)
		return false;
	int64_t took_us = now_us - t->began_us;
	assert(took_us >= 0);
	metrics_observe(t->histogram, took_us);
	if (!loop_turn_is_slow(took_us))
		return false;
	if (t->told_us > 0 && now_us - t->told_us < TOLD_AGAIN_US) {
		t->untold++;
		return false;
	}
	log_slow_turn(t, took_us, now_us);
	return true;
}
