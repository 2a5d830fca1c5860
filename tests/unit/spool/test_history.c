/* SPDX-License-Identifier: ISC */
/* Random histories: a child works with the queue and tells its parent, through shared memory, what
 * it has been promised; it is killed at a random moment; what the next one finds must agree. */
#include "harness.h"
#include "tests/unit/base/sanitized.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { MESSAGES = 20000, CHILDREN = SANITIZED ? 4 : 12 };

/* What is known of each message; written by the child before or after the fact, so that a crash
 * between leaves the weaker claim. */
enum fate { NEW, STORED, FINISHED };

static struct shared {
	int n;
	struct fact {
		uint64_t id;
		volatile enum fate fate;
		volatile bool first_done; /* the verdict on its first recipient is on disk */
		volatile bool finishing;  /* it may be gone */
	} fact[MESSAGES];
} * shared;

static unsigned seed;

static int chance(int of)
{
	return rand_r(&seed) % of;
}

static struct fact *fact_of(uint64_t id)
{
	for (int i = shared->n - 1; i >= 0; i--)
		if (shared->fact[i].id == id)
			return &shared->fact[i];
	fail_msg("a message that was never stored: it came back from nowhere");
	return NULL;
}

static void note_stored(void)
{
	static int seen;
	for (; seen < h.nstored; seen++) {
		struct fact *f = fact_of(h.stored[seen]);
		if (f->fate == NEW)
			f->fate = STORED;
	}
}

static uint64_t store(void)
{
	struct spool_store *s = harness_new_store(&h, 2, (size_t)chance(4000) + 1);
	shared->fact[shared->n].id = s->id;
	shared->n++;
	uint64_t id = s->id;
	loop_post(spool_loop(h.spool), &s->note);
	return id;
}

/* One verdict is recorded and known to be on disk: the answer to a store behind it says so. */
static void deliver_first(struct envelope *e)
{
	harness_delivered(&h, e->id, 0, VERDICT_SENT);
	uint64_t behind = store();
	while (h.nstored == 0 || h.stored[h.nstored - 1] != behind)
		harness_wait(&h, &h.nstored, h.nstored + 1); /* answers come in order */
	note_stored();
	fact_of(e->id)->first_done = true;
	e->rcpt[0].done = true;
}

static void step(struct envelope **held, int *nheld)
{
	ev_run(h.loop->ev, EVRUN_NOWAIT);
	note_stored();
	while (h.taken < h.narrival && *nheld < 100)
		held[(*nheld)++] = harness_take(&h);
	if (*nheld == 0 || chance(3) == 0) {
		store();
		return;
	}
	int i = chance(*nheld);
	struct envelope *e = held[i];
	if (!e->rcpt[0].done && chance(4) == 0) {
		deliver_first(e);
		return;
	}
	held[i] = held[--*nheld];
	if (chance(3)) {
		fact_of(e->id)->finishing = true;
		harness_release(&h, e->id, NULL);
		envelope_free(&e);
	} else {
		e->rounds++;
		e->due_ms = clock_wall_ms() + chance(50);
		harness_release(&h, e->id, e);
	}
}

static void child(int number)
{
	seed = (unsigned)number * 7919 + 1;
	harness_open(&h);
	harness_credit(&h, 200);
	struct envelope *held[100];
	int nheld = 0;
	for (int i = 0; i < 100000 && shared->n < MESSAGES - 1; i++)
		step(held, &nheld);
	_exit(0);
}

static int in_queue(uint64_t id, const struct spool_command *c)
{
	int n = 0;
	for (int i = 0; i < c->nrow; i++)
		n += c->row[i].envelope->id == id;
	return n;
}

static void check(void)
{
	harness_open(&h);
	struct spool_command *c = harness_ask(&h, SPOOL_LIST, 0, 0, 1 << 30);
	for (int i = 0; i < shared->n; i++) {
		struct fact *f = &shared->fact[i];
		int there = f->id ? in_queue(f->id, c) : 0;
		if (f->fate == STORED && !f->finishing)
			assert_int_equal(there, 1);
		if (f->fate == FINISHED)
			assert_int_equal(there, 0);
		/* What was not promised and is gone, or was finished and is gone, stays so. */
		if (!there)
			f->fate = FINISHED;
		else if (f->fate == NEW)
			f->fate = STORED;
		f->finishing = false;
	}
	for (int i = 0; i < c->nrow; i++)
		if (fact_of(c->row[i].envelope->id)->first_done)
			assert_true(c->row[i].envelope->rcpt[0].done);
	spool_command_free(&c);
	harness_close(&h);
}

static void what_was_promised_holds_through_kill_at_any_moment(void **state)
{
	(void)state;
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	assert_true(shared != MAP_FAILED);
	harness_init(&h);
	seed = 4711;
	for (int i = 0; i < CHILDREN; i++) {
		pid_t pid = fork();
		if (pid == 0) {
			loop_free(&h.loop);
			h.loop = loop_new("client", harness_receive, NULL, &h);
			child(i);
		}
		usleep((useconds_t)(50000 + chance(600000)));
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		check();
	}
	print_message("%d messages, %d segments left\n", shared->n, harness_files(&h, "log"));
	harness_fini(&h);
	munmap(shared, sizeof *shared);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_promised_holds_through_kill_at_any_moment),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
