/* SPDX-License-Identifier: ISC */
/* The power is cut at any moment of any history: what was promised is there after the next start.
 *
 * CUTS=100000 for a longer run; SEED=n plays one history again, with its log. */
#include "tests/unit/base/unit.h"

#include "base/mem.h"
#include "spool/disk.h"
#include "spool/lane.h"
#include "spool/spare.h"
#include "tests/unit/base/sanitized.h"
#include "tests/unit/spool/edges.h"
#include "tests/unit/spool/world.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CUTS = SANITIZED ? 1500 : 4000, LIVES = 4, STEPS = 60, NESTED = 2, MOST = 100 };

static long cuts, replaced, spared;

static void on_abort(int signal_number)
{
	char line[60];
	int n = snprintf(line, sizeof line, "aborted: SEED=%llu\n", (unsigned long long)world_seed);
	(void)!write(STDERR_FILENO, line, (size_t)n);
	signal(signal_number, SIG_DFL);
	raise(signal_number);
}

static void audit_images(struct world *, int depth);

static void look_for_spare(void *owner, const char *name, int fd)
{
	(void)owner;
	(void)fd;
	spared += strstr(name, "/log/spare0") != NULL;
}

/* What this cut has left is started; and, while it is recovered, cut again. */
static void audit(struct image *image, uint64_t seed, int depth)
{
	struct world *w = mem_alloc(sizeof *w);
	world_init(w, image->disk, seed);
	image->disk = NULL;
	w->promises = image->promises;
	memdisk_files(w->disk, look_for_spare, NULL);
	cuts++;
	w->cut_every = depth < NESTED ? 12 : 0;
	if (depth > 0 && chance_percent(&w->power, 30))
		world_lose_checkpoint(w);
	edges_stepped(false);
	promises_started(&w->promises, true);
	world_open(w);
	world_audit(w, chance_percent(&w->chance, 50));
	world_kill(w);
	audit_images(w, depth + 1);
	/* It has been found once: it is found again, and is the same. */
	struct memdisk *again = memdisk_cut(w->disk, &w->power);
	memdisk_free(&w->disk);
	w->disk = again;
	w->cut_every = 0;
	if (chance_percent(&w->power, 50))
		world_lose_checkpoint(w);
	promises_started(&w->promises, true);
	world_open(w);
	world_audit(w, false);
	world_kill(w);
	world_fini(w);
	free(w);
}

static void audit_images(struct world *w, int depth)
{
	for (int i = 0; i < w->nimage; i++) {
		audit(w->image[i], chance_next(&w->power), depth);
		image_free(&w->image[i]);
	}
	w->nimage = 0;
}

static void next_life(struct world *w)
{
	uint32_t how = chance_below(&w->chance, 4);
	if (how == 0) {
		world_stop(w);
		promises_started(&w->promises, false);
		return;
	}
	world_kill(w);
	if (how == 1) {
		promises_started(&w->promises, false);
		return;
	}
	struct memdisk *cut = memdisk_cut(w->disk, &w->power);
	memdisk_free(&w->disk);
	w->disk = cut;
	cuts++;
	promises_started(&w->promises, true);
}

/* Records of another life lie in the segments that come next, whole. */
static void leave_spares(struct world *w)
{
	enum { BYTES = 500 };
	static const uint8_t payload[BYTES] = "of an earlier life";
	world_open(w);
	world_stop(w);
	promises_started(&w->promises, false);
	struct spares spares;
	int folder = disk_open(AT_FDCWD, "/var/spool/sluice/log", O_RDONLY | O_DIRECTORY);
	spares_find(&spares, folder, (uint64_t)w->conf->segment_size);
	for (uint64_t i = 0; i < SPARES_MAX; i++) {
		struct segment *g = segment_create(folder, 1000 + i, spares.size, LANE_MAIN, true);
		struct lane lane;
		struct place place;
		lane_init(&lane, LANE_MAIN, g->size);
		lane.current = g;
		while (lane_has_room(&lane, record_size(BYTES)))
			lane_add(
				&lane,
				&(struct record){.type = (uint8_t)(1 + chance_below(&w->chance, 6)),
						 .length = BYTES,
						 .id = chance_next(&w->chance)},
				payload, true, &place);
		bool kept = lane_write(&lane) && disk_datasync(g->file->fd) == 0 &&
			    spares_keep(&spares, g);
		if (!kept)
			world_broken("a segment can't be a spare one", NULL);
		lane_fini(&lane);
		segment_free(&g);
	}
	disk_close(folder);
}

static void play(uint64_t seed)
{
	struct world *w = mem_alloc(sizeof *w);
	world_seed = seed;
	edges_begin();
	world_init(w, memdisk_new(), seed << 8);
	if (chance_percent(&w->chance, 50))
		leave_spares(w);
	if (chance_percent(&w->chance, 50))
		w->uneven = seed << 8;
	uint32_t lives = 1 + chance_below(&w->chance, LIVES);
	for (uint32_t i = 0; i < lives; i++) {
		edges_stepped(chance_percent(&w->chance, 70));
		w->cut_every = 100;
		world_open(w);
		for (uint32_t n = chance_below(&w->chance, STEPS); n > 0; n--)
			world_step(w);
		next_life(w);
	}
	audit_images(w, 0);
	replaced += w->nreplaced;
	world_fini(w);
	free(w);
}

static void what_was_promised_survives_a_power_cut_at_any_moment(void **state)
{
	(void)state;
	const char *seed = getenv("SEED"), *wanted = getenv("CUTS"), *from = getenv("FROM");
	long n = wanted ? atol(wanted) : CUTS;
	signal(SIGABRT, on_abort);
	world_loud = seed;
	if (seed) {
		play(strtoull(seed, NULL, 10));
		return;
	}
	/* However few are wanted, some are of what it is about: which seed has that changes with the code. */
	uint64_t first = from ? strtoull(from, NULL, 10) : 1;
	for (uint64_t i = first; cuts < n || (i < first + MOST && !(replaced > 0 && spared > 0));
	     i++)
		play(i);
	print_message("%ld cuts, %ld of them with a spare segment, %llu histories, %ld messages "
		      "replaced\n",
		      cuts, spared, (unsigned long long)world_seed, replaced);
	assert_true(replaced > 0 && spared > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_promised_survives_a_power_cut_at_any_moment),
	};
	return RUN(tests);
}
