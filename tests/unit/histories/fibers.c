/* SPDX-License-Identifier: ISC */
/* A jump to another stack is what this is made of. */
#undef _FORTIFY_SOURCE
#include "tests/unit/histories/fibers.h"

#include "base/list.h"
#include "base/mem.h"

#include <assert.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

enum { STACK = 256 << 10, FIBERS = 128, PAUSED_LOOK_US = 50000, BUSY_TURNS = 20, BUSY_US = 100000 };

struct fiber {
	int of;
	const char *name;
	void *(*run)(void *);
	void *argument;
	ucontext_t begin;
	jmp_buf at;
	char *stack;
	bool begun, ended, timed_out, sleeps;
	bool (*ready)(void *);
	void *of_what;
	int64_t until_us;
	int turns;	   /* at a time, */
	int64_t turned_us; /* that one; */
	int64_t back_us;   /* and when it may go on after too many of them */
#ifdef __SANITIZE_ADDRESS__
	void *fake;
#endif
};

struct event {
	struct list link;
	int64_t at_us;
	int of;
	unsigned life;
	void (*happen)(void *);
	void *to;
};

struct fibers fibers;

static struct fiber *all[FIBERS];
static int count;
static struct fiber *self;
static jmp_buf driver;
static int entered = FIBER_NOBODY;
static unsigned lives[FIBER_PROCESSES];
static bool paused[FIBER_PROCESSES];
static struct list events = {&events, &events};
static char *spare[FIBERS];
static int nspare;
#ifdef __SANITIZE_ADDRESS__
static const void *driver_bottom;
static size_t driver_size;
static void *driver_fake;
#endif

static struct event *event_of(struct list *link)
{
	return list_entry(link, struct event, link);
}

static void drop(int i)
{
	spare[nspare++] = all[i]->stack;
	free(all[i]);
	all[i] = all[--count];
}

void fibers_begin(uint64_t seed, void (*enter)(int of))
{
	while (count > 0)
		drop(count - 1);
	list_each (link, tmp, &events) {
		list_remove(link);
		free(event_of(link));
	}
	fibers = (struct fibers){
		.now_us = INT64_C(1000000000), .chance.state = seed, .enter = enter};
	memset(paused, 0, sizeof paused);
	entered = FIBER_NOBODY;
	self = NULL;
}

struct fiber *fiber_new(int of, const char *name, void *(*run)(void *), void *argument)
{
	struct fiber *f = mem_zalloc(sizeof *f);
	assert(count < FIBERS);
	f->of = of;
	f->name = name;
	f->run = run;
	f->argument = argument;
	f->stack = nspare > 0 ? spare[--nspare] : mem_alloc(STACK);
	f->until_us = INT64_MIN;
	all[count++] = f;
	return f;
}

/* Back to who drives. */
static void leave(void)
{
#ifdef __SANITIZE_ADDRESS__
	__sanitizer_start_switch_fiber(self->ended ? NULL : &self->fake, driver_bottom,
				       driver_size);
#endif
	_longjmp(driver, 1);
}

static void begin(void)
{
#ifdef __SANITIZE_ADDRESS__
	__sanitizer_finish_switch_fiber(NULL, &driver_bottom, &driver_size);
#endif
	self->run(self->argument);
	self->ended = true;
	leave();
}

static void jump_in(struct fiber *f)
{
#ifdef __SANITIZE_ADDRESS__
	__sanitizer_start_switch_fiber(&driver_fake, f->stack, STACK);
#endif
	if (f->begun)
		_longjmp(f->at, 1);
	f->begun = true;
	getcontext(&f->begin);
	f->begin.uc_stack.ss_sp = f->stack;
	f->begin.uc_stack.ss_size = STACK;
	makecontext(&f->begin, begin, 0);
	setcontext(&f->begin);
}

static void go_on(struct fiber *f)
{
	fibers_enter(f->of);
	self = f;
	if (_setjmp(driver) == 0)
		jump_in(f);
#ifdef __SANITIZE_ADDRESS__
	__sanitizer_finish_switch_fiber(driver_fake, NULL, NULL);
#endif
	self = NULL;
}

bool fiber_wait(bool (*ready)(void *), void *of_what, int64_t until_us)
{
	struct fiber *f = self;
	assert(f);
	f->ready = ready;
	f->of_what = of_what;
	f->until_us = until_us;
	if (_setjmp(f->at) == 0)
		leave();
#ifdef __SANITIZE_ADDRESS__
	__sanitizer_finish_switch_fiber(f->fake, &driver_bottom, &driver_size);
#endif
	return !f->timed_out;
}

void fiber_sleep(int64_t us)
{
	struct fiber *f = self;
	f->sleeps = true;
	fiber_wait(NULL, NULL, fibers.now_us + us);
	f->sleeps = false;
}

static bool has_ended(void *fiber)
{
	return ((const struct fiber *)fiber)->ended;
}

void fiber_join(struct fiber *f)
{
	if (!f->ended)
		fiber_wait(has_ended, f, INT64_MAX);
	int i = 0;
	while (all[i] != f)
		i++;
	drop(i);
}

bool fiber_runs(void)
{
	return self;
}

int fibers_process(void)
{
	return entered;
}

void fibers_enter(int of)
{
	if (entered == of)
		return;
	entered = of;
	fibers.enter(of);
}

static bool can_go_on(struct fiber *f)
{
	if (f->ended || paused[f->of])
		return false;
	f->timed_out = false;
	if (f->ready && f->ready(f->of_what))
		return true;
	f->timed_out = f->until_us <= fibers.now_us && f->back_us <= fibers.now_us;
	return f->timed_out;
}

/* Who goes on at once, and once more, has to stand back for a while, as where others need the processor. */
static void count_turn(struct fiber *f)
{
	if (f->turned_us != fibers.now_us)
		f->turns = 0;
	f->turned_us = fibers.now_us;
	if (++f->turns < BUSY_TURNS)
		return;
	f->turns = 0;
	f->back_us = fibers.now_us + BUSY_US;
	fibers.busy++;
	fibers.busiest = f->name;
}

/* False: none can. */
static bool one_goes_on(void)
{
	struct fiber *can[FIBERS];
	uint32_t n = 0;
	for (int i = 0; i < count; i++)
		if (can_go_on(all[i]))
			can[n++] = all[i];
	if (n == 0)
		return false;
	struct fiber *next = can[n > 1 ? chance_below(&fibers.chance, n) : 0];
	if (next->timed_out)
		count_turn(next);
	go_on(next);
	return true;
}

static bool one_happens(void)
{
	struct event *e = list_empty(&events) ? NULL : event_of(list_first(&events));
	if (!e || e->at_us > fibers.now_us)
		return false;
	list_remove(&e->link);
	if (e->of != FIBER_NOBODY && paused[e->of] && e->life == lives[e->of]) {
		fibers_after(PAUSED_LOOK_US, e->of, e->happen, e->to);
	} else if (e->of == FIBER_NOBODY || e->life == lives[e->of]) {
		if (e->of != FIBER_NOBODY)
			fibers_enter(e->of);
		e->happen(e->to);
	}
	free(e);
	return true;
}

/* To when the next one can go on. */
static void jump(int64_t until_us)
{
	int64_t next_us = until_us, exact_us = INT64_MAX;
	for (int i = 0; i < count; i++) {
		const struct fiber *f = all[i];
		int64_t due_us = f->until_us > f->back_us ? f->until_us : f->back_us;
		if (f->sleeps && due_us < exact_us && !paused[f->of])
			exact_us = due_us;
		if (!f->ended && !paused[f->of] && due_us < next_us)
			next_us = due_us;
	}
	if (next_us < fibers.now_us + fibers.slack_us)
		next_us = fibers.now_us + fibers.slack_us;
	if (next_us > exact_us)
		next_us = exact_us;
	if (!list_empty(&events) && event_of(list_first(&events))->at_us < next_us)
		next_us = event_of(list_first(&events))->at_us;
	if (next_us > until_us)
		next_us = until_us;
	if (next_us <= fibers.now_us)
		return;
	fibers.now_us = next_us;
}

static bool never(void *nothing)
{
	(void)nothing;
	return false;
}

bool fibers_run_for(bool (*done)(void *), void *of_what, int64_t until_us)
{
	assert(!self);
	while (!done(of_what)) {
		if (one_happens() || one_goes_on())
			continue;
		if (fibers.now_us >= until_us)
			return false;
		jump(until_us);
	}
	return true;
}

void fibers_run(int64_t until_us)
{
	fibers_run_for(never, NULL, until_us);
}

void fibers_kill(int of)
{
	assert(!self || self->of != of);
	lives[of]++;
	paused[of] = false;
	for (int i = count - 1; i >= 0; i--)
		if (all[i]->of == of)
			drop(i);
}

void fibers_kill_self(void)
{
	int of = self->of;
	lives[of]++;
	for (int i = 0; i < count; i++)
		if (all[i]->of == of) {
			all[i]->ready = never;
			all[i]->until_us = INT64_MAX;
		}
	fiber_wait(never, NULL, INT64_MAX);
	abort();
}

void fibers_pause(int of, bool is)
{
	paused[of] = is;
}

bool fibers_paused(int of)
{
	return paused[of];
}

unsigned fibers_life(int of)
{
	return lives[of];
}

void fibers_after(int64_t delay_us, int of, void (*happen)(void *), void *to)
{
	struct event *e = mem_zalloc(sizeof *e);
	e->at_us = fibers.now_us + delay_us;
	e->of = of;
	e->life = of == FIBER_NOBODY ? 0 : lives[of];
	e->happen = happen;
	e->to = to;
	struct list *before = events.prev;
	while (before != &events && event_of(before)->at_us > e->at_us)
		before = before->prev;
	list_insert_before(before->next, &e->link);
}
