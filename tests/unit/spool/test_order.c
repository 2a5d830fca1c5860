/* SPDX-License-Identifier: ISC */
/* What must be on stable storage before what, one thing at a time: the power is cut right then. */
#include "tests/unit/base/unit.h"

#include "base/fence.h"
#include "base/mem.h"
#include "spool/adoption.h"
#include "spool/compact.h"
#include "spool/spool_core.h"
#include "tests/unit/spool/edges.h"
#include "tests/unit/spool/world.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

enum { CUTS = 20, SEEDS = 20, IMAGES = 64, CALLS = 60 };

static struct world *w;
static struct image images[IMAGES];
static int nimage;

static void begin(uint64_t seed)
{
	world_seed = seed;
	w = mem_alloc(sizeof *w);
	edges_begin();
	edges_stepped(false);
	world_init(w, memdisk_new(), seed);
	world_open(w);
	edges_settle();
}

static void end(void)
{
	world_fini(w);
	free(w);
	w = NULL;
}

static void open_again(bool after_cut)
{
	book_started(&w->book, after_cut);
	world_open(w);
	edges_settle();
}

static void store(int n)
{
	for (int i = 0; i < n; i++)
		world_store(w, true);
}

static void take_all(void)
{
	for (int i = 0; i < 20; i++)
		world_do(w, "credit");
	edges_pass(2000000);
}

static void audit(struct memdisk *disk, const struct book *book, bool without_checkpoint)
{
	w->disk = disk;
	w->book = *book;
	if (without_checkpoint)
		world_lose_checkpoint(w);
	open_again(true);
	world_audit(w, true);
	world_kill(w);
	memdisk_free(&w->disk);
}

/* What many cuts now would leave agrees with the book. */
static void cut_now(bool without_checkpoint)
{
	struct book book = w->book;
	struct memdisk *disk = w->disk;
	world_kill(w);
	for (int i = 0; i < CUTS; i++)
		audit(memdisk_cut(disk, &w->power), &book, without_checkpoint);
	w->disk = disk;
}

/* An image before each call that brings something to the disk. */
static void take_image(struct world *of, enum memdisk_call call)
{
	bool changes = call == CALL_UNLINK || call == CALL_RENAME || call == CALL_SYNC ||
		       call == CALL_DATASYNC || call == CALL_CREATE;
	if (!changes || nimage == IMAGES)
		return;
	mailbox_drain(&of->client->mailbox);
	images[nimage++] =
		(struct image){.disk = memdisk_cut(of->disk, &of->power), .book = of->book};
}

/* The queue has ended. */
static void audit_images(bool without_checkpoint)
{
	struct memdisk *disk = w->disk;
	w->on_call = NULL;
	for (int i = 0; i < nimage; i++)
		audit(images[i].disk, &images[i].book, without_checkpoint);
	nimage = 0;
	w->disk = disk;
}

static void close_fence(struct world *of, enum memdisk_call call)
{
	(void)of;
	if (call == CALL_DATASYNC)
		fence_set(0);
}

static void open_fence(void)
{
	fence_set(FENCE_NEVER);
	w->on_call = NULL;
}

/* Another node takes over while it is synced: the client hears no, and nobody sends it. */
static void what_is_synced_behind_a_closed_fence_is_refused(void **state)
{
	(void)state;
	begin(1);
	w->promised = true;
	w->on_call = close_fence;
	assert_false(world_store(w, true));
	assert_int_equal(w->book.letter[0].state, LETTER_REFUSED);
	open_fence();
	world_pass_long(w);
	cut_now(false);
	end();
}

/* A segment is full in the midst of a batch; while it is synced the fence closes. */
static void what_is_stored_behind_a_closed_fence_is_not_begun_with_it(void **state)
{
	(void)state;
	begin(2);
	for (int i = 0; i < 20; i++)
		world_do(w, "credit");
	edges_settle();
	w->on_call = close_fence;
	while (w->book.n < LETTERS)
		world_store(w, false);
	edges_settle();
	int stored = 0;
	for (int i = 0; i < w->book.n; i++)
		stored += w->book.letter[i].state == LETTER_STORED &&
			  !letter_held(&w->book.letter[i]);
	assert_true(w->nheld > 0 && w->nheld < stored);
	open_fence();
	world_kill(w);
	end();
}

static int files;

static void count_taken(void *owner, const char *name, int fd)
{
	(void)owner;
	(void)fd;
	files += strstr(name, "/taken/") != NULL;
}

/* In no cut is there a file that would be stored once more. */
static void nothing_is_left_in_taken(void)
{
	for (int i = 0; i < CUTS; i++) {
		struct memdisk *cut = memdisk_cut(w->disk, &w->power);
		files = 0;
		memdisk_files(cut, count_taken, NULL);
		assert_int_equal(files, 0);
		memdisk_free(&cut);
	}
}

static void what_was_taken_is_begun_when_its_file_is_gone_for_good(void **state)
{
	(void)state;
	begin(3);
	w->taken = true;
	while (w->nheld == 0) {
		world_do(w, "credit");
		world_store(w, true);
	}
	nothing_is_left_in_taken();
	world_kill(w);
	end();
}

static void at_a_start_likewise(void **state)
{
	(void)state;
	begin(4);
	store(4);
	world_kill(w);
	for (int i = 0; i < w->book.n; i++)
		if (w->book.letter[i].state == LETTER_STORED)
			world_lay(w->book.letter[i].id);
	open_again(false);
	take_all();
	assert_true(w->nheld > 0);
	nothing_is_left_in_taken();
	world_kill(w);
	end();
}

/* Adoption notes ids before their messages are stored, and ends when all are there. */
static void ids_of_adopted_messages_are_there_until_they_are_let_go(void **state)
{
	(void)state;
	const uint64_t id[3] = {700, 701, 702};
	begin(5);
	world_kill(w);
	int folder = disk_open(AT_FDCWD, "/var/spool/sluice", O_RDONLY | O_DIRECTORY);
	for (size_t n = 1; n <= 4; n++) {
		if (n <= 3)
			assert_true(adoption_note(folder, &id[n - 1], 1));
		else
			assert_int_equal(adoption_end(folder), 0);
		for (int i = 0; i < CUTS; i++) {
			struct adoption a;
			struct memdisk *cut = memdisk_cut(w->disk, &w->power);
			memdisk_use(cut, NULL, NULL);
			int there =
				disk_open(AT_FDCWD, "/var/spool/sluice", O_RDONLY | O_DIRECTORY);
			assert_true(adoption_read(&a, there));
			assert_int_equal(a.n, n <= 3 ? n : 0);
			adoption_fini(&a);
			disk_close(there);
			memdisk_free(&cut);
			memdisk_use(w->disk, NULL, NULL);
		}
	}
	disk_close(folder);
	end();
}

static void a_verdict_is_safe_when_its_group_is_written(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		begin(seed);
		store(6);
		take_all();
		world_pass_long(w);
		for (int i = 0; i < 6; i++)
			world_do(w, "deliver");
		edges_pass(30);
		book_firm_verdicts(&w->book, w->book.seq++);
		cut_now(false);
		end();
	}
}

/* What was refused since its sync failed must not come with the power. */
static void what_was_refused_is_cut_off_for_good(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		begin(seed);
		store(2);
		w->fails = true;
		memdisk_fail(w->disk, CALL_DATASYNC, 1, EIO, false);
		while (w->book.n < LETTERS && !memdisk_failed(w->disk))
			world_store(w, true);
		w->fails = false;
		cut_now(false);
		end();
	}
}

static void compact_all(void)
{
	struct journal *j = &w->spool->journal;
	const uint64_t end = j->next_seq;
	for (struct list *l = j->segments.next; l != &j->segments;) {
		struct segment *g = list_entry(l, struct segment, link);
		l = l->next;
		if (g->head.seq < end && g->live > 0 && !journal_open_segment(j, g))
			compact_segment(w->spool, g);
	}
	edges_settle();
}

/* An envelope that was moved must not be there without its content, for it holds in place of the old one. */
static void what_is_moved_is_whole_at_any_moment(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		begin(seed);
		store(12);
		world_stop(w);
		open_again(false);
		w->on_call = take_image;
		compact_all();
		assert_true(nimage > 0);
		world_kill(w);
		audit_images(false);
		end();
	}
}

/* Three lives: messages are put off; they are delivered; all that is left of them goes. The third has not begun. */
static void let_all_be_done(uint64_t seed)
{
	begin(seed);
	store(8);
	take_all();
	while (w->nheld > 0)
		world_do(w, "keep");
	world_pass_long(w);
	world_stop(w);
	open_again(false);
	take_all();
	while (w->nheld > 0)
		world_do(w, "finish");
	world_pass_long(w);
	world_stop(w);
}

/* Of what goes, that which says of the other that it is dead goes last: also for who has no checkpoint. */
static void what_goes_leaves_behind_what_says_that_it_is_dead(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		let_all_be_done(seed);
		book_started(&w->book, false);
		world_open(w);
		w->on_call = take_image;
		world_pass_long(w);
		world_stop(w);
		audit_images(seed % 2);
		end();
	}
}

static int calls;

static void die(struct world *of, enum memdisk_call call)
{
	(void)call;
	if (calls-- > 0)
		return;
	mailbox_drain(&of->client->mailbox);
	memdisk_freeze(of->disk, true);
	of->closed = true;
}

/* A process is killed; what it has left in the kernel, and not synced, is believed by the next, and then the power goes. */
static void what_a_killed_process_has_marked_is_made_safe(void **state)
{
	(void)state;
	for (int n = 1; n <= CALLS; n++) {
		let_all_be_done((uint64_t)(n % 5 + 1));
		book_started(&w->book, false);
		world_open(w);
		calls = n;
		w->on_call = die;
		edges_pass(1500);
		w->on_call = NULL;
		world_kill(w);
		open_again(false);
		world_pass_long(w);
		cut_now(true);
		end();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_synced_behind_a_closed_fence_is_refused),
		cmocka_unit_test(what_is_stored_behind_a_closed_fence_is_not_begun_with_it),
		cmocka_unit_test(what_was_taken_is_begun_when_its_file_is_gone_for_good),
		cmocka_unit_test(at_a_start_likewise),
		cmocka_unit_test(ids_of_adopted_messages_are_there_until_they_are_let_go),
		cmocka_unit_test(a_verdict_is_safe_when_its_group_is_written),
		cmocka_unit_test(what_was_refused_is_cut_off_for_good),
		cmocka_unit_test(what_is_moved_is_whole_at_any_moment),
		cmocka_unit_test(what_goes_leaves_behind_what_says_that_it_is_dead),
		cmocka_unit_test(what_a_killed_process_has_marked_is_made_safe),
	};
	return RUN(tests);
}
