/* SPDX-License-Identifier: ISC */
/* What must be on stable storage before what, one thing at a time: the power is cut right then. */
#include "tests/unit/base/unit.h"

#include "base/fence.h"
#include "base/mem.h"
#include "spool/adoption.h"
#include "spool/compact.h"
#include "spool/inventory.h"
#include "spool/spare.h"
#include "spool/spool_core.h"
#include "spool/turn.h"
#include "tests/unit/base/sanitized.h"
#include "tests/unit/spool/edges.h"
#include "tests/unit/spool/world.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

enum { CUTS = 20, SEEDS = SANITIZED ? 6 : 60, IMAGES = 128, SYNCS = 12 };

static struct world *w;
static struct image images[IMAGES];
static int nimage;

/* A queue that has been started. */
static void begin(uint64_t seed)
{
	w = world_begin(seed);
	world_open(w);
	edges_settle();
}

static void take_all(void)
{
	for (int i = 0; i < 20; i++)
		world_do(w, "credit");
	edges_pass(2000000);
}

/* An image before each call that brings something to the disk. */
static void take_image(struct world *of, enum memdisk_call call)
{
	bool changes = call == CALL_UNLINK || call == CALL_RENAME || call == CALL_SYNC ||
		       call == CALL_DATASYNC || call == CALL_CREATE;
	mailbox_drain(&of->client->mailbox);
	for (int i = 0; changes && i < 3 && nimage < IMAGES; i++)
		images[nimage++] = (struct image){.disk = memdisk_cut(of->disk, &of->power),
						  .promises = of->promises};
}

/* The queue has ended. */
static void audit_images(void)
{
	struct memdisk *disk = w->disk;
	w->on_call = NULL;
	for (int i = 0; i < nimage; i++)
		world_look(w, images[i].disk, &images[i].promises, i % 2);
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
	assert_int_equal(w->promises.promise[0].state, PROMISE_REFUSED);
	open_fence();
	world_pass_long(w);
	world_cut(w, CUTS, false);
	world_done(&w);
}

/* A segment is full in the midst of a batch; while it is synced the fence closes. */
/* The fence closes at the first sync of a segment's name or end: of what is stored beside that few were begun by then, and all
 * would be if nobody looked. */
static void what_is_stored_behind_a_closed_fence_is_not_begun_with_it(void **state)
{
	(void)state;
	int begun = 0, stored = 0;
	for (uint64_t seed = 1; seed <= SEEDS / 4; seed++) {
		begin(seed);
		for (int i = 0; i < 20; i++)
			world_do(w, "credit");
		edges_settle();
		w->on_call = close_fence;
		while (w->promises.n < PROMISES)
			world_store(w, false);
		edges_settle();
		for (int i = 0; i < w->promises.n; i++)
			stored += w->promises.promise[i].state == PROMISE_STORED &&
				  !promise_held(&w->promises.promise[i]);
		begun += w->nheld;
		open_fence();
		world_kill(w);
		world_done(&w);
	}
	assert_true(begun > 0 && 2 * begun < stored);
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

/* Whoever has heard of it may send it. */
static void look_into_taken(struct world *of, enum memdisk_call call)
{
	(void)call;
	mailbox_drain(&of->client->mailbox);
	if (of->nheld > 0)
		nothing_is_left_in_taken();
}

static void what_was_taken_is_begun_when_its_file_is_gone_for_good(void **state)
{
	(void)state;
	begin(3);
	w->taken = true;
	w->on_call = look_into_taken;
	while (w->nheld == 0) {
		world_do(w, "credit");
		world_store(w, true);
	}
	nothing_is_left_in_taken();
	world_kill(w);
	world_done(&w);
}

static void at_a_start_likewise(void **state)
{
	(void)state;
	begin(4);
	world_store_some(w, 4);
	world_kill(w);
	for (int i = 0; i < w->promises.n; i++)
		if (w->promises.promise[i].state == PROMISE_STORED)
			world_lay(w->promises.promise[i].id);
	world_again(w, false);
	take_all();
	assert_true(w->nheld > 0);
	nothing_is_left_in_taken();
	world_kill(w);
	world_done(&w);
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
	world_done(&w);
}

/* Of so many messages, of which one is perhaps finished at once. */
static void check_verdicts_of(uint64_t seed, int messages, int verdicts, bool finished)
{
	begin(seed);
	world_store_some(w, messages);
	take_all();
	world_pass_long(w);
	for (int i = 0; i < verdicts; i++)
		world_do(w, "deliver");
	if (finished)
		world_do(w, "finish");
	edges_pass(30);
	promises_firm_verdicts(&w->promises, w->promises.seq++);
	world_cut(w, CUTS, false);
	world_done(&w);
}

static void a_verdict_is_safe_when_its_group_is_written(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		check_verdicts_of(seed, 6, 6, false);
}

/* Every other does. */
static void so_is_a_release_that_says_it(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		check_verdicts_of(seed, 1, 0, true);
}

/* One record says then that it was delivered and that nothing is left to do. */
static void so_is_one_that_its_finish_stands_for(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		check_verdicts_of(seed, 1, 1, true);
}

static int held_before, handed;
static bool written, early;

/* Before each call: whatever was handed to qmgr since the last one. */
static void look_what_is_handed(struct world *of, enum memdisk_call call)
{
	mailbox_drain(&of->client->mailbox);
	if (of->nheld > held_before) {
		handed++;
		early |= written;
	}
	held_before = of->nheld;
	written = call == CALL_WRITE || (written && call != CALL_DATASYNC);
}

/* Whatever begins once more, too: it is settled by then, and its start is all that there is to sync. */
static void a_start_is_safe_before_the_delivery_begins(void **state)
{
	(void)state;
	handed = 0;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		begin(seed);
		held_before = 0;
		written = early = false;
		w->on_call = look_what_is_handed;
		world_store_some(w, 1);
		for (int round = 0; round < 4; round++) {
			take_all();
			look_what_is_handed(w, CALL_READ);
			world_do(w, "keep");
			edges_settle();
			look_what_is_handed(w, CALL_READ);
		}
		assert_false(early);
		w->on_call = NULL;
		world_kill(w);
		world_done(&w);
	}
	assert_true(handed > SEEDS * 3 / 2);
}

/* What was refused since its sync failed must not come with the power. */
static void what_was_refused_is_cut_off_for_good(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		begin(seed);
		world_store_some(w, 2);
		w->fails = true;
		memdisk_fail(w->disk, CALL_DATASYNC, 1, EIO, false);
		while (w->promises.n < PROMISES && !memdisk_failed(w->disk))
			world_store(w, true);
		w->fails = false;
		world_cut(w, CUTS, false);
		world_done(&w);
	}
}

static struct memdisk *cuts[IMAGES];
static int ncut;

static void take_cut(void *owner, enum memdisk_call call)
{
	struct memdisk *of = owner;
	(void)call;
	if (ncut < IMAGES)
		cuts[ncut++] = memdisk_cut(of, &w->power);
}

static int heads;

/* Whatever has the name of a segment is it, or was never written to. */
static void has_its_head(void *owner, const char *path, int fd)
{
	const char *name = strrchr(path, '/') + 1;
	uint8_t bytes[SEGMENT_HEAD] = {0};
	const uint8_t zeros[SEGMENT_HEAD] = {0};
	struct segment_head h;
	uint64_t seq;
	(void)owner;
	if (!segment_name_parse(name, &seq))
		return;
	assert_int_equal(disk_read(fd, bytes, sizeof bytes, 0), SEGMENT_HEAD);
	heads++;
	if (memcmp(bytes, zeros, sizeof bytes) != 0)
		assert_true(segment_head_get(bytes, &h) && h.seq == seq);
}

static int log_folder(void)
{
	memdisk_use(w->disk, NULL, NULL);
	return disk_open(AT_FDCWD, "/var/spool/sluice/log", O_RDONLY | O_DIRECTORY);
}

/* Else a start would put it aside as damaged, and say that mail may be missing. */
static void a_segment_is_always_what_its_name_says(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct spares spares;
		begin(seed);
		world_kill(w);
		int folder = log_folder();
		spares_find(&spares, folder, 1 << 16);
		struct segment *g = segment_create(folder, 1000, 1 << 16, LANE_MAIN, true);
		memdisk_use(w->disk, take_cut, w->disk);
		assert_true(spares_keep(&spares, g));
		segment_free(&g);
		g = spares_take(&spares, 1001, LANE_MAIN, false);
		memdisk_use(w->disk, NULL, NULL);
		assert_non_null(g);
		segment_free(&g);
		disk_close(folder);
		while (ncut > 0) {
			memdisk_files(cuts[--ncut], has_its_head, NULL);
			memdisk_free(&cuts[ncut]);
		}
		world_done(&w);
	}
	assert_true(heads > 0);
}

static void remove_segment(void *owner, const char *path, int fd)
{
	const char *name = strrchr(path, '/') + 1;
	uint64_t seq;
	(void)fd;
	if (segment_name_parse(name, &seq))
		assert_int_equal(disk_unlink(*(int *)owner, name), 0);
}

static void spoil_heads(void *owner, const char *path, int fd)
{
	const char *name = strrchr(path, '/') + 1;
	uint8_t bytes[SEGMENT_HEAD_AGAIN + SEGMENT_HEAD];
	struct iovec v = {.iov_base = bytes, .iov_len = sizeof bytes};
	int folder = *(int *)owner;
	uint64_t seq;
	(void)fd;
	if (!segment_name_parse(name, &seq))
		return;
	memset(bytes, 'x', sizeof bytes);
	int to = disk_open(folder, name, O_RDWR);
	assert_true(to >= 0 && disk_write(to, &v, 1, 0) == 0 && disk_datasync(to) == 0);
	disk_close(to);
}

/* A content with a file, wherever it lies. */
static void count_large(void *owner, const char *path, int fd)
{
	uint64_t id;
	(void)fd;
	*(int *)owner += inventory_large(strrchr(path, '/') + 1, &id);
}

static int large_on(const struct memdisk *disk)
{
	int n = 0;
	memdisk_files(disk, count_large, &n);
	return n;
}

static void hear_nothing(void *owner, struct note *note)
{
	(void)owner;
	(void)note;
}

/* One life of a queue of which nobody asks anything. */
static void live_alone(struct memdisk *disk, void (*on_call)(void *, enum memdisk_call))
{
	struct loop *client = loop_new("client", hear_nothing, NULL, NULL);
	struct buf error;
	buf_init(&error);
	memdisk_use(disk, on_call, disk);
	struct spool *spool = spool_new(w->conf, client, &error);
	assert_non_null(spool);
	loop_start(client);
	spool_start(spool);
	edges_settle();
	memdisk_freeze(disk, true);
	loop_stop(spool_loop(spool));
	spool_free(&spool);
	memdisk_freeze(disk, false);
	loop_free(&client);
	buf_fini(&error);
}

/* The checkpoint says that there were segments. */
static void content_of_a_missing_segment_is_kept(void **state)
{
	(void)state;
	begin(1);
	world_store_some(w, 24);
	world_stop(w);
	int folder = log_folder(), large = large_on(w->disk);
	assert_true(large > 0);
	memdisk_files(w->disk, remove_segment, &folder);
	disk_close(folder);
	edges_pass(5000); /* what comes in has later ids */
	live_alone(w->disk, NULL);
	assert_int_equal(large_on(w->disk), large);
	world_done(&w);
}

/* Nobody knows it any more: what did is put aside, but not before it. */
static void content_of_a_segment_without_a_head_is_kept_through_any_cut(void **state)
{
	int had = 0;
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS / 2; seed++) {
		begin(seed);
		world_store_some(w, 24);
		world_stop(w);
		int folder = log_folder(), large = large_on(w->disk);
		memdisk_files(w->disk, spoil_heads, &folder);
		disk_close(folder);
		edges_pass(5000); /* what comes in has later ids */
		live_alone(w->disk, take_cut);
		assert_int_equal(large_on(w->disk), large);
		memdisk_free(&w->disk);
		while (ncut > 0) {
			w->disk = cuts[--ncut];
			if (ncut % 2)
				world_lose_checkpoint(w);
			live_alone(w->disk, NULL);
			assert_true(large_on(w->disk) >=
				    large); /* one that was removed may be back */
			memdisk_free(&w->disk);
		}
		had += large;
		world_done(&w);
	}
	assert_true(had > 0);
}

/* What proved it goes next. */
static void what_is_spent_says_so_after_any_cut(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		int64_t changed_ms;
		begin(seed);
		world_kill(w);
		int folder = log_folder();
		struct segment *g = segment_create(folder, 1000, 1 << 16, LANE_MAIN, true);
		assert_true(segment_spend(g));
		segment_free(&g);
		disk_close(folder);
		struct memdisk *whole = w->disk;
		w->disk = memdisk_cut(whole, &w->power);
		folder = log_folder();
		g = segment_open(folder, 1000, O_RDONLY, &changed_ms);
		assert_true(g && g->says_spent);
		segment_free(&g);
		disk_close(folder);
		memdisk_free(&w->disk);
		w->disk = whole;
		world_done(&w);
	}
}

/* One head, or one of the flags behind them, can't be read. */
static void what_is_spent_is_known_where_one_read_fails(void **state)
{
	enum { READS = 5 };
	(void)state;
	begin(1);
	world_kill(w);
	int folder = log_folder();
	struct segment *g = segment_create(folder, 1000, 1 << 16, LANE_MAIN, true);
	assert_true(segment_spend(g));
	segment_free(&g);
	for (int nth = 1; nth <= READS; nth++) {
		int64_t changed_ms;
		memdisk_fail(w->disk, CALL_READ, nth, EIO, false);
		g = segment_open(folder, 1000, O_RDONLY, &changed_ms);
		assert_true(g && g->says_spent);
		segment_free(&g);
	}
	memdisk_fail(w->disk, CALL_READ, 0, 0, false);
	disk_close(folder);
	world_done(&w);
}

/* Bytes that are left in the segment that is written to. */
static uint64_t room_left(void)
{
	const struct segment *g = w->spool->journal.lane[LANE_MAIN].current;
	return g->size - g->end;
}

/* Whoever of these is on hold stays, and with him his segment. */
static bool any_held(int from)
{
	bool any = false;
	for (int i = from; i < w->promises.n; i++)
		any |= promise_held(&w->promises.promise[i]);
	return any;
}

/* What says that they are done lies at the end of a segment that is full then, and nothing else there is needed: it may go
 * at once, but not before their envelopes are known to be dead. */
static void what_a_full_segment_says_is_settled_before_it_goes(void **state)
{
	enum { OLD = 36, FINISHES = 600, TRIES = SANITIZED ? 1 : 10 };
	(void)state;
	int tried = 0;
	for (uint64_t seed = 2401; seed <= 6400 && tried < TRIES; seed++) {
		begin(seed);
		world_store_some(w, OLD);
		take_all();
		int old = w->nheld;
		world_store_some(w, PROMISES - OLD - 2);
		take_all();
		while (w->nheld > old) {
			world_finish_last(w);
		}
		world_pass_long(w);
		if (room_left() > 100 && room_left() < FINISHES && !any_held(OLD) &&
		    w->spool->journal.lane[LANE_MAIN].current->live == 0) {
			tried++;
			while (w->nheld > 0)
				world_do(w, "finish");
			for (int i = 0; i < 20; i++)
				edges_pass(50);
			world_pass_long(w);
			world_cut(w, CUTS, false);
		} else {
			world_kill(w);
		}
		world_done(&w);
	}
	assert_true(tried > 0);
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
		world_store_some(w, 12);
		world_stop(w);
		world_again(w, false);
		w->on_call = take_image;
		compact_all();
		assert_true(nimage > 0);
		world_kill(w);
		audit_images();
		world_done(&w);
	}
}

/* Nothing is collected for a while. */
static void collect_later(void)
{
	w->spool->journal.checkpoint_ms = w->spool->loop->now_ms;
}

/* Three lives: messages are put off; most of them are delivered, and some are put off again; and a kill comes before
 * anything goes. The third has not begun. */
static void let_most_be_done(uint64_t seed)
{
	begin(seed);
	world_store_some(w, 12);
	take_all();
	while (w->nheld > 0)
		world_do(w, "keep");
	world_pass_long(w);
	world_stop(w);
	world_again(w, false);
	take_all();
	collect_later();
	while (w->nheld > 3)
		world_do(w, "finish");
	while (w->nheld > 0)
		world_do(w, "keep");
	for (int i = 0; i < 3; i++) {
		uint32_t seq = w->promises.seq++;
		world_store(w, true);
		promises_firm_all(&w->promises, seq);
	}
	world_kill(w);
}

/* Of what goes, that which says of the other that it is dead goes last: also for who has no checkpoint. */
static void what_goes_leaves_behind_what_says_that_it_is_dead(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		let_most_be_done(seed);
		promises_started(&w->promises, false);
		world_open(w);
		w->on_call = take_image;
		world_pass_long(w);
		world_stop(w);
		audit_images();
		world_done(&w);
	}
}

static int calls;

static void die(struct world *of, enum memdisk_call call)
{
	if (call != CALL_DATASYNC || calls-- > 0)
		return;
	mailbox_drain(&of->client->mailbox);
	memdisk_freeze(of->disk, true);
	of->closed = true;
}

/* A process is killed; what it has left in the kernel, and not synced, is believed by the next, and then the power goes. */
static void what_a_killed_process_has_marked_is_made_safe(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS / 4; seed++) {
		for (int n = 0; n < SYNCS; n++) {
			let_most_be_done(seed);
			promises_started(&w->promises, false);
			edges_stepped(true);
			world_open(w);
			calls = n;
			w->on_call = die;
			edges_threads(INT32_MAX);
			edges_pass(1500);
			w->on_call = NULL;
			world_kill(w);
			edges_stepped(false);
			world_again(w, false);
			world_pass_long(w);
			world_cut(w, CUTS, true);
			world_done(&w);
		}
	}
}

static int name_syncs, most_in_a_turn, in_all, made_in_a_turn;

static void count_name_syncs(struct world *of, enum memdisk_call call)
{
	(void)of;
	name_syncs += call == CALL_SYNC;
}

static void watch(void (*turn)(void *), void *spool)
{
	const struct lane *l = &((struct spool *)spool)->journal.lane[LANE_MAIN];
	bool had_next = l->next;
	name_syncs = 0;
	turn(spool);
	made_in_a_turn += l->next && !had_next;
	in_all += name_syncs;
	most_in_a_turn = name_syncs > most_in_a_turn ? name_syncs : most_in_a_turn;
}

static void watch_run(void *spool)
{
	watch(turn_run, spool);
}

static void watch_gathered(void *spool)
{
	watch(turn_gathered, spool);
}

/* Such a sync takes several times what that of a commit takes, and nobody has a 250 meanwhile: so that one comes between two
 * of them, new segments are made elsewhere, and old ones go one after the other. */
static void a_turn_syncs_names_once(void **state)
{
	(void)state;
	begin(5);
	w->spool->loop->mailbox.received_all = watch_run;
	w->spool->tick.expired = w->spool->gathered.coarse.expired = watch_gathered;
	w->on_call = count_name_syncs;
	for (int i = 0; i < 8; i++) {
		for (int k = 0; k < 4; k++) {
			world_do(w, "credit");
			world_store(w, true);
		}
		edges_settle();
		while (w->nheld > 0)
			world_finish_last(w);
		for (int k = 0; k < 4; k++)
			edges_pass(500);
	}
	world_pass_long(w);
	assert_true(w->spool->journal.next_seq > 4); /* several were made, */
	assert_true(in_all > 4);		     /* and went */
	assert_int_equal(most_in_a_turn, 1);
	assert_int_equal(made_in_a_turn, 0);
	w->on_call = NULL;
	world_kill(w);
	world_done(&w);
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
		cmocka_unit_test(so_is_a_release_that_says_it),
		cmocka_unit_test(so_is_one_that_its_finish_stands_for),
		cmocka_unit_test(a_start_is_safe_before_the_delivery_begins),
		cmocka_unit_test(what_was_refused_is_cut_off_for_good),
		cmocka_unit_test(a_segment_is_always_what_its_name_says),
		cmocka_unit_test(content_of_a_segment_without_a_head_is_kept_through_any_cut),
		cmocka_unit_test(content_of_a_missing_segment_is_kept),
		cmocka_unit_test(what_is_spent_says_so_after_any_cut),
		cmocka_unit_test(what_is_spent_is_known_where_one_read_fails),
		cmocka_unit_test(what_a_full_segment_says_is_settled_before_it_goes),
		cmocka_unit_test(what_is_moved_is_whole_at_any_moment),
		cmocka_unit_test(a_turn_syncs_names_once),
		cmocka_unit_test(what_goes_leaves_behind_what_says_that_it_is_dead),
		cmocka_unit_test(what_a_killed_process_has_marked_is_made_safe),
	};
	return RUN(tests);
}
