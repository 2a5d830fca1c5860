/* SPDX-License-Identifier: ISC */
/* Each call to the disk fails in turn, once or from then on: nothing that was promised is lost, new mail
 * is refused meanwhile, and when the disk works again so does the queue.
 *
 * VARIANTS=100 for a longer run;
 * FAULT=kind.n.good.variant plays one of them again, with its log. */
#include "tests/unit/base/unit.h"

#include "base/mem.h"
#include "tests/unit/base/sanitized.h"
#include "tests/unit/spool/edges.h"
#include "tests/unit/spool/world.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BEFORE = 50, STEPS = 40, MOST = 400, VARIANTS_MOST = 1000 };

enum { VARIANTS = SANITIZED ? 2 : 8 }; /* histories for each fault */

static struct fault {
	enum memdisk_call call;
	int nth;
	bool for_good;
	int variant; /* of the history; 0: it begins with an empty disk */
} fault;

static void on_abort(int signal_number)
{
	char line[100];
	int n = snprintf(line, sizeof line, "aborted: FAULT=%d.%d.%d.%d (%s)\n", fault.call,
			 fault.nth, fault.for_good, fault.variant, memdisk_call_name(fault.call));
	(void)!write(STDERR_FILENO, line, (size_t)n);
	signal(signal_number, SIG_DFL);
	raise(signal_number);
}

/* A queue with messages of all kinds in it. */
static void before(struct world *w)
{
	edges_stepped(false);
	world_open(w);
	for (int i = 0; i < BEFORE; i++)
		world_step(w);
	world_kill(w);
	promises_started(&w->promises, false);
}

/* A start or a stop may fail; then it is tried again when the disk works. */
static void open_in_spite_of_it(struct world *w)
{
	if (world_open(w))
		return;
	for (int call = 0; call < CALL_KINDS; call++)
		memdisk_fail(w->disk, call, 0, 0, false);
	w->fails = false;
	world_open(w);
	w->fails = true;
}

/* False: there were not so many calls. */
static bool play(void)
{
	static const int error[] = {EIO, ENOSPC, EROFS};
	struct world *w = mem_alloc(sizeof *w);
	world_seed = ((uint64_t)fault.nth * 32 + fault.call * 2u + fault.for_good) * VARIANTS_MOST +
		     (uint64_t)fault.variant;
	edges_begin();
	world_init(w, memdisk_new(), world_seed << 9);
	w->uneven = fault.variant % 2 ? world_seed << 8 : 0;
	if (fault.variant > 0)
		before(w);
	w->fails = true;
	w->promises.vague = fault.call == CALL_READ;
	w->chance.state = world_seed << 8;
	memdisk_fail(w->disk, fault.call, fault.nth, error[fault.nth % 3], fault.for_good);
	edges_stepped(chance_percent(&w->chance, 50));
	open_in_spite_of_it(w);
	uint32_t n = chance_below(&w->chance, STEPS);
	for (uint32_t i = 0; i < STEPS; i++) {
		world_step(w);
		if (i == n && chance_percent(&w->chance, 30)) {
			world_stop(w);
			promises_started(&w->promises, false);
			open_in_spite_of_it(w);
		}
	}
	bool failed = memdisk_failed(w->disk);
	edges_threads(INT32_MAX);
	world_heal(w);
	world_kill(w);
	struct memdisk *cut = memdisk_cut(w->disk, &w->power);
	memdisk_free(&w->disk);
	w->disk = cut;
	promises_started(&w->promises, true);
	world_open(w);
	world_audit(w, true);
	world_kill(w);
	world_fini(w);
	free(w);
	return failed;
}

/* The first, the second, until histories have no more of them. */
static int each_call(int call, bool for_good)
{
	const char *wanted = getenv("VARIANTS");
	int plays = 0, variants = wanted ? atoi(wanted) : VARIANTS;
	bool any = true;
	for (int nth = 1; any && nth <= MOST; nth++) {
		any = false;
		for (int variant = 0; variant < variants; variant++) {
			fault = (struct fault){(enum memdisk_call)call, nth, for_good, variant};
			bool failed = play();
			any |= failed;
			plays += failed;
		}
	}
	return plays;
}

static void every_call_fails_in_turn(bool for_good)
{
	const char *one = getenv("FAULT");
	int call, nth, good, variant, plays = 0;
	signal(SIGABRT, on_abort);
	world_loud = one;
	if (one && sscanf(one, "%d.%d.%d.%d", &call, &nth, &good, &variant) == 4) {
		fault = (struct fault){(enum memdisk_call)call, nth, good, variant};
		play();
		return;
	}
	for (call = 0; call < CALL_KINDS; call++)
		plays += each_call(call, for_good);
	print_message("%d faults\n", plays);
}

static void a_call_that_fails_once_costs_nothing_that_was_promised(void **state)
{
	(void)state;
	every_call_fails_in_turn(false);
}

static void a_disk_that_fails_for_good_costs_nothing_once_it_works_again(void **state)
{
	(void)state;
	every_call_fails_in_turn(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_that_fails_once_costs_nothing_that_was_promised),
		cmocka_unit_test(a_disk_that_fails_for_good_costs_nothing_once_it_works_again),
	};
	return RUN(tests);
}
