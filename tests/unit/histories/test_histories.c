/* SPDX-License-Identifier: ISC */
/* Thousands of histories of a cluster. HISTORIES=n so many; FROM=seed; SEED=seed one, loudly; FAULTS=name,name none
 * but these; WITHOUT=name,name all but these. EACH=1 names all that fail, and shortens none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "replica/harvest.h"
#include "replica/life.h"
#include "tests/unit/base/sanitized.h"
#include "tests/unit/histories/history.h"
#include "tests/unit/spool/memdisk.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	WORK = 40,
	TAKERS = 40,
	CUTS = 20,
	CROSSINGS = 9,
	MANY = 10 /* more than a qmgr takes at once */
};
enum { QUIET = SANITIZED ? 20 : 60, BATCH = 50, SECONDS = 10, DETAIL = 240 };

/* What came of one; written by the child that played it. */
struct outcome {
	bool played;
	enum broken broken;
	char detail[DETAIL];
};

static struct shared {
	int at; /* that is being played */
	struct outcome outcome[BATCH];
} * shared;

static uint32_t allowed = UINT32_MAX;
static bool each; /* say what came of each, and shorten none */

static void set_alarm(int seconds)
{
	struct itimerval t = {.it_value.tv_sec = seconds};
	setitimer(ITIMER_VIRTUAL, &t, NULL);
}

static void note(struct outcome *o)
{
	o->broken = ledger.broken;
	memcpy(o->detail, ledger.detail, sizeof o->detail);
	o->played = true;
}

/* What it says when it ends itself goes into a file. */
static int open_words(void)
{
	int fd = memfd_create("words", 0);
	assert_true(fd >= 0);
	return fd;
}

static void ended_itself(struct outcome *o, int status, int words)
{
	char text[DETAIL] = "";
	ssize_t n = pread(words, text, sizeof text - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	o->played = true;
	o->broken = BROKEN_ASSERT;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGVTALRM)
		snprintf(o->detail, sizeof o->detail, "it runs on and on");
	else
		snprintf(o->detail, sizeof o->detail, "%.200s (signal %d)", text, WTERMSIG(status));
}

/* In a child, since whoever is killed leaves all that it had. */
static void play_some(const struct story *h, int n)
{
	int status = 0, words = open_words();
	fflush(stdout);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		dup2(words, STDERR_FILENO);
		signal(SIGSEGV, SIG_DFL); /* cmocka takes them for failures of the test */
		signal(SIGABRT, SIG_DFL);
		for (; shared->at < n; shared->at++) {
			set_alarm(SECONDS);
			history_play(&h[shared->at]);
			note(&shared->outcome[shared->at]);
		}
		_exit(0);
	}
	waitpid(pid, &status, 0);
	if (shared->at < n)
		ended_itself(&shared->outcome[shared->at++], status, words);
	close(words);
}

static void play_all(const struct story *h, int n)
{
	memset(shared, 0, sizeof *shared);
	while (shared->at < n)
		play_some(h, n);
}

static struct outcome play_one(const struct story *h)
{
	play_all(h, 1);
	return shared->outcome[0];
}

/* Leave out what it does not take: halves, quarters, ..., single acts. */
static void shorten(struct story *h, enum broken broken)
{
	for (int size = h->n / 2; size > 0; size = size > 1 ? size / 2 : 0) {
		for (int at = 0; at < h->n;) {
			struct story less = *h;
			int end = at + size < h->n ? at + size : h->n;
			memmove(&less.act[at], &less.act[end],
				(size_t)(h->n - end) * sizeof less.act[0]);
			less.n -= end - at;
			if (play_one(&less).broken == broken)
				*h = less;
			else
				at += size;
		}
	}
}

static struct tally {
	long n;
	uint64_t seed;
	struct outcome outcome;
} tallies[BROKEN_SENTENCES];

static void count(uint64_t seed, const struct outcome *o)
{
	struct tally *t = &tallies[o->broken];
	if (each && o->broken)
		printf("SEED=%llu: %s: %s\n", (unsigned long long)seed, broken_text(o->broken),
		       o->detail);
	if (t->n++ > 0)
		return;
	t->seed = seed;
	t->outcome = *o;
}

static void report(enum broken b)
{
	struct story h;
	const struct tally *t = &tallies[b];
	printf("%ld histories: %s; the first is SEED=%llu: %s\n", t->n, broken_text(b),
	       (unsigned long long)t->seed, t->outcome.detail);
	if (each)
		return;
	history_make(&h, t->seed, allowed);
	int before = h.n;
	shorten(&h, b);
	printf("   %d of its %d acts do: ", h.n, before);
	history_print(&h, stdout);
	fflush(stdout);
}

static void play_many(uint64_t from, long n)
{
	static struct story h[BATCH];
	for (long done = 0; done < n; done += BATCH) {
		int some = (int)(n - done < BATCH ? n - done : BATCH);
		for (int i = 0; i < some; i++)
			history_make(&h[i], from + (uint64_t)(done + i), allowed);
		play_all(h, some);
		for (int i = 0; i < some; i++)
			count(h[i].seed, &shared->outcome[i]);
	}
}

static void play_loudly(uint64_t seed)
{
	struct story h;
	history_make(&h, seed, allowed);
	history_loud = true;
	if (getenv("SHORT")) {
		history_loud = false;
		shorten(&h, play_one(&h).broken);
		history_loud = true;
	}
	history_print(&h, stdout);
	history_play(&h);
	printf("%s: %s\n", broken_text(ledger.broken), ledger.detail);
	assert_int_equal(ledger.broken, BROKEN_NONE);
}

static uint32_t faults_of(const char *names)
{
	uint32_t bits = 0;
	char *text = strdup(names), *save = NULL;
	for (char *name = strtok_r(text, ",", &save); name; name = strtok_r(NULL, ",", &save))
		bits |= history_fault(name);
	free(text);
	return bits;
}

static void share(void)
{
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	assert_true(shared != MAP_FAILED);
}

static void a_message_that_vanishes_is_seen(void **state)
{
	struct story h = {.seed = 1, .machines = 2};
	(void)state;
	share();
	history_add(&h, "store");
	history_add(&h, "pass");
	assert_int_equal(play_one(&h).broken, BROKEN_NONE);
	history_add(&h, "vanish");
	assert_int_equal(play_one(&h).broken, BROKEN_LOST);
	munmap(shared, sizeof *shared);
}

static void add_acts(struct story *h, const char *names)
{
	char *text = strdup(names), *save = NULL;
	for (char *name = strtok_r(text, " ", &save); name; name = strtok_r(NULL, " ", &save))
		history_add(h, name);
	free(text);
}

static void play_well(const struct story *h)
{
	share();
	struct outcome o = play_one(h);
	if (o.broken)
		printf("%s: %s\n", broken_text(o.broken), o.detail);
	assert_int_equal(o.broken, BROKEN_NONE);
	munmap(shared, sizeof *shared);
}

static void mail_leaves_though_its_stream_is_full(void **state)
{
	(void)state;
	for (int async = 0; async < 2; async++) {
		struct story h = {.seed = 1, .machines = 2, .async = async, .stays_full = true};
		add_acts(&h, "store store store pass limit store store store pass long long");
		play_well(&h);
	}
}

/* Each was begun, and mostly finished, and its stream knows nothing of that. */
static void who_adopts_what_left_then_names_it_in_doubt(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 5; seed++) {
		struct story h = {.seed = seed, .machines = 2};
		add_acts(&h, "store store store store store store store pass limit");
		for (int i = 0; i < WORK; i++)
			add_acts(&h, "work");
		add_acts(&h, "gone unfull long");
		play_well(&h);
	}
}

/* By "act:machine". */
static void add_acts_at(struct story *h, const char *names, uint64_t salt)
{
	char *text = strdup(names), *save = NULL;
	for (char *name = strtok_r(text, " ", &save); name; name = strtok_r(NULL, " ", &save)) {
		char *colon = strchr(name, ':');
		*colon = '\0';
		history_add_at(h, name, atoi(colon + 1), salt++);
	}
	free(text);
}

/* Node 0 was taking the queue of node 2 when it ended, and is adopted itself, while the bucket has lost that. */
static void what_a_taker_had_taken_is_taken_with_it(void **state)
{
	(void)state;
	for (uint64_t salt = 1; salt <= TAKERS; salt++) {
		struct story h = {.seed = salt, .machines = 3};
		add_acts_at(
			&h,
			"kill:1 long:0 long:0 store:2 store:2 store:2 work:2 work:2 work:2 fall:0",
			salt);
		add_acts_at(&h, "kill:2 long:0 long:0 start:1 pass:1 pass:1 pass:1 pass:1", salt);
		add_acts_at(&h, "pass:1 forget:2", salt);
		for (uint64_t i = 0; i < WORK / 2; i++)
			add_acts_at(&h, "pass:1 work:1 work:1", salt + i);
		play_well(&h);
	}
}

/* Node 2 was taking the queue of node 0 when it ended; node 1, which takes both, ends in the middle, and the bucket loses that it has
 * node 2, while node 0 names no other any more. */
static void what_a_taker_had_taken_is_told_until_that_is_closed(void **state)
{
	/* Of 4,000, those in which it ends there. */
	static const uint64_t salts[] = {172, 1157, 1415, 1582, 2392, 2799, 3544, 3798, 3843};
	(void)state;
	for (size_t s = 0; s < sizeof salts / sizeof salts[0]; s++) {
		const uint64_t salt = salts[s];
		struct story h = {.seed = salt, .machines = 4};
		add_acts_at(&h, "kill:1 kill:3 long:0 long:0 store:0 store:0 store:0 store:0",
			    salt);
		add_acts_at(&h, "work:0 work:0 work:0 fall:2 kill:0 long:0 long:0", salt);
		add_acts_at(&h,
			    "start:1 fall:1 long:0 long:0 start:1 fall:1 long:0 long:0 forget:2 "
			    "start:3",
			    salt);
		for (uint64_t i = 0; i < WORK / 2; i++)
			add_acts_at(&h, "pass:3 work:3 work:3", salt + i);
		play_well(&h);
	}
}

/* Node 0 was taking the queue of node 1 when it ended, and the bucket does not know node 1 any more. */
static void what_a_lost_row_was_taken_by_is_not_released(void **state)
{
	(void)state;
	for (uint64_t salt = 1; salt <= TAKERS; salt++) {
		struct story h = {.seed = salt, .machines = 2};
		add_acts_at(&h, "store:1 store:1 store:1 work:1 work:1 fall:0 kill:1", salt);
		add_acts_at(&h, "long:0 long:0 lose:1 start:0", salt);
		for (uint64_t i = 0; i < WORK / 2; i++)
			add_acts_at(&h, "pass:0 work:0 work:0", salt + i);
		play_well(&h);
	}
}

/* Node 0 has taken the queue of node 1, and does not know yet that its own word has got through. */
static void what_an_unanswered_word_has_made_ours_is_ours(void **state)
{
	(void)state;
	for (uint64_t salt = 1; salt <= TAKERS / 4; salt++) {
		struct story h = {.seed = salt, .machines = 2};
		add_acts_at(&h, "store:1 store:1 store:1 work:1 work:1 kill:1", salt);
		for (uint64_t i = 0; i < WORK; i++)
			add_acts_at(&h, "pass:0 word:1", salt + i);
		play_well(&h);
	}
}

/* Node 1 has taken the queue of node 0 and has no room for any more; the bucket has lost that, and the stream does when there was time to
 * write it there again. */
static void who_has_no_room_looks_for_what_the_bucket_has_lost(void **state)
{
	(void)state;
	for (uint64_t salt = 1; salt <= TAKERS / 4; salt++) {
		struct story h = {.seed = salt, .machines = 2};
		add_acts_at(&h, "store:0 store:0 store:0 work:0 kill:0 long:1 long:1", salt);
		add_acts_at(&h, "room:1 undo:0 long:1 long:1 long:1 long:1 unsay:0 start:0", salt);
		for (uint64_t i = 0; i < WORK / 2; i++)
			add_acts_at(&h, "work:1 pass:1", salt + i);
		play_well(&h);
	}
}

/* Node 1 has taken the queue of node 0, and ends before that is released. When it comes back it was told to take that of node 2, too, and its
 * disk is full for good. */
static void what_was_taken_before_is_released_before_more_is_taken(void **state)
{
	(void)state;
	for (uint64_t salt = 1; salt <= TAKERS / 4; salt++) {
		struct story h = {.seed = salt, .machines = 3};
		add_acts_at(&h, "store:2 store:2 work:2 store:0 store:0 work:0 drop:1 kill:0",
			    salt);
		add_acts_at(&h, "pass:1 pass:1 kill:2 long:1 long:1 long:1", salt);
		add_acts_at(&h, "claim:2 fill:1 start:0 start:1", salt);
		play_well(&h);
	}
}

/* Node 2 takes the queue of node 0 with that of node 1, which node 0 was to take. It has said so of the first when the bucket loses that it is
 * taking the second, sends all, and is taken by node 3. */
static void what_is_ours_with_another_is_said_of_each(void **state)
{
	(void)state;
	for (uint64_t salt = 1; salt <= TAKERS / 4; salt++) {
		struct story h = {.seed = salt, .machines = 4};
		add_acts_at(&h, "kill:3 long:2 long:2 store:0", salt);
		for (uint64_t i = 0; i < MANY; i++)
			add_acts_at(&h, "store:1", salt + i);
		add_acts_at(&h, "slip:1 kill:0 kill:1 claim:1 long:2 long:2", salt);
		add_acts_at(&h, "start:3 long:3 long:3 long:3", salt);
		play_well(&h);
	}
}

/* A write or sync of node 0 fails, which refuses a batch; then its disk is gone, and node 1 has what the stream has. */
static void what_is_refused_is_sent_by_no_adopter(void **state)
{
	(void)state;
	for (uint64_t salt = 1; salt <= TAKERS; salt++) {
		struct story h = {.seed = salt, .machines = 2, .strict = true};
		add_acts_at(&h, "store:0 store:0 work:0 work:0 pass:0", salt);
		for (uint64_t i = 0; i < 3; i++)
			add_acts_at(&h, "fail:0 store:0 work:0 store:0 work:0 pass:0", salt + i);
		add_acts_at(&h, "pass:0 gone:0 long:1 work:1 work:1 long:1", salt);
		play_well(&h);
	}
}

/* Each is told again and again to take the other's queue, while answers come so late that both their epochs run out. */
static void orders_that_cross_leave_one_with_an_epoch(void **state)
{
	/* Of 11,000, those in which both have just run out where both are told so. */
	static const uint64_t salts[] = {3777, 4890, 10298};
	(void)state;
	for (size_t s = 0; s < sizeof salts / sizeof salts[0]; s++) {
		struct story h = {.seed = salts[s], .machines = 2};
		add_acts_at(&h, "long:0 store:0 store:1", 16 + salts[s] * 32);
		for (uint64_t i = 0; i < CROSSINGS; i++) {
			const uint64_t salt = salts[s] * 1000 + i * 32;
			add_acts_at(&h, "slow:0 pass:0 adopt:0 adopt:1 pass:0 adopt:0 adopt:1",
				    salt);
			add_acts_at(&h,
				    "pass:0 adopt:0 adopt:1 pass:0 adopt:0 adopt:1 fast:0 long:0 "
				    "long:0",
				    salt + 7);
		}
		play_well(&h);
	}
}

/* Neither has an epoch, and each waits for the other: node 2 takes both. */
static void queues_that_were_claimed_crosswise_are_taken_by_a_third(void **state)
{
	(void)state;
	for (uint64_t salt = 1; salt <= TAKERS / 4; salt++) {
		struct story h = {.seed = salt, .machines = 3};
		add_acts_at(&h, "store:0 store:0 store:1 store:2 work:0 work:1 pass:0 cross:1",
			    salt);
		add_acts_at(&h, "store:0 store:1 pass:0 work:2 long:0 store:2 long:0", salt);
		play_well(&h);
	}
}

/* The queue of node 2 was another's once. Node 2 takes the queue of node 3 with that of node 0, which node 3 was to take, and has said so of the
 * first when the bucket loses that it came back: node 1 sees a queue whose taker has lost its own. */
static void what_a_taker_that_came_back_takes_is_no_orphan(void **state)
{
	(void)state;
	for (uint64_t salt = 1; salt <= TAKERS; salt++) {
		struct story h = {.seed = salt, .machines = 4};
		add_acts_at(&h, "kill:2 long:1 long:1 long:1 note:2 start:2 long:2", salt);
		add_acts_at(&h, "store:0 store:0 store:0 store:3 work:0 work:0 work:0 pass:0",
			    salt);
		add_acts_at(&h, "lapse:0 fall:3 kill:0 claim:0 pass:0 pass:0 pass:0 kill:3 claim:3",
			    salt);
		add_acts_at(&h, "long:2 long:2 long:2 start:0 long:2 start:3 long:3", salt);
		play_well(&h);
	}
}

static struct memdisk *disk;
static int calls;

static void stop_in_time(void *nothing, enum memdisk_call call)
{
	(void)nothing;
	(void)call;
	if (calls > 0 && --calls == 0)
		memdisk_freeze(disk, true);
}

static void put_file(const char *path)
{
	struct iovec v = {.iov_base = "x", .iov_len = 1};
	int fd = disk_open(AT_FDCWD, path, O_WRONLY | O_CREAT);
	assert_int_equal(disk_write(fd, &v, 1, 0), 0);
	assert_int_equal(disk_sync(fd), 0);
	disk_close(fd);
}

static void sync_folder(const char *path)
{
	int fd = disk_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);
	assert_int_equal(disk_sync(fd), 0);
	disk_close(fd);
}

static bool there(const char *path)
{
	int fd = disk_open(AT_FDCWD, path, O_RDONLY);
	if (fd >= 0)
		disk_close(fd);
	return fd >= 0;
}

/* Killed before its nth call. True: it came to that. */
static bool stop_removal_at(int n)
{
	disk = memdisk_new();
	calls = 0;
	memdisk_use(disk, stop_in_time, NULL);
	disk_make_folder(AT_FDCWD, "/q");
	disk_make_folder(AT_FDCWD, "/q/adopted-from-n9");
	disk_make_folder(AT_FDCWD, "/q/adopted-from-n9/log");
	put_file("/q/adopted-from-n9/log/1");
	put_file("/q/adopted-from-n9/format");
	put_file("/q/adopted-from-n9/origin");
	sync_folder("/q/adopted-from-n9/log");
	sync_folder("/q/adopted-from-n9");
	calls = n;
	harvest_remove_folder("/q", "adopted-from-n9");
	bool came = calls == 0;
	calls = 0;
	memdisk_freeze(disk, false);
	return came;
}

static void judge_removal(struct memdisk *d)
{
	memdisk_use(d, NULL, NULL);
	if (there("/q/adopted-from-n9/origin"))
		assert_true(there("/q/adopted-from-n9/format") &&
			    there("/q/adopted-from-n9/log/1"));
	memdisk_free(&d);
}

/* By a kill, or by a cut of the power. */
static void what_is_removed_in_part_does_not_say_that_it_is_whole(void **state)
{
	struct chance c = {.state = 1};
	bool came = true;
	int n = 1;
	(void)state;
	for (; came; n++) {
		came = stop_removal_at(n);
		memdisk_abandon(disk);
		for (int i = 0; i < CUTS; i++)
			judge_removal(memdisk_cut(disk, &c));
		judge_removal(disk);
	}
	assert_true(n > 6);
}

/* One read error, and another node may be sending what is in it. */
static void a_queue_that_may_be_past_is_not_opened(void **state)
{
	(void)state;
	disk = memdisk_new();
	memdisk_use(disk, NULL, NULL);
	disk_make_folder(AT_FDCWD, "/q");
	put_file("/q/node.past");
	for (int nth = 1; nth <= 3; nth++) {
		struct buf error = {0};
		memdisk_fail(disk, CALL_OPEN, nth, EMFILE, false);
		assert_false(life_put_aside("/q", &error));
		assert_true(buf_len(&error) > 0);
		buf_fini(&error);
	}
	memdisk_use(NULL, NULL, NULL);
	memdisk_free(&disk);
}

static void play_seeds(const uint64_t seeds[], size_t n, uint32_t faults)
{
	for (size_t i = 0; i < n; i++) {
		struct story h;
		history_make(&h, seeds[i], faults);
		play_well(&h);
	}
}

/* That were there when these seeds were found. */
static uint32_t all_by_name(void)
{
	return history_fault("sync") - 1;
}

static uint32_t faults_named(const char *const names[], size_t n)
{
	uint32_t named = 0;
	for (size_t i = 0; i < n; i++)
		named |= history_fault(names[i]);
	return named;
}

/* A queue adopted twice by one node, since NATS lost the first; rows that NATS has an older state of, of nodes that are gone; a
 * repair that could not open a file for once. A retired name whose row was lost; what had been taken of a queue that another has since;
 * content that was moved where no copy of it came; two that were refused, and of which one came back; a purge of what was adopted
 * that met what its node had written since. */
static void those_that_were_found_are_mended(void **state)
{
	static const uint64_t seeds[] = {27971,	  90338, 95728,	 100307, 43184, 87566,
					 93762,	  37302, 78661,	 74620,	 36954, 76659,
					 1019237, 6496,	 860170, 929076};
	(void)state;
	play_seeds(seeds, sizeof seeds / sizeof seeds[0], ~UINT32_C(0));
}

static void and_those_that_take_all_faults(void **state)
{
	static const uint64_t seeds[] = {3617,	  1394,	   1014279, 1074988, 1085407,
					 1084082, 1121009, 1162243, 1182331, 1268248,
					 1399254, 1668943, 1693209, 1706890, 1947913,
					 1958129, 1981737, 2215042, 2263075, 1015290};
	(void)state;
	play_seeds(seeds, sizeof seeds / sizeof seeds[0], all_by_name());
}

/* A start that said that its epoch begins behind what it had sent; two that were each told to take the other's queue; two that
 * belong together, and were given back one by one. */
static void and_those_of_uneven_histories(void **state)
{
	static const uint64_t seeds[] = {11174, 21474, 29926, 626505, 712915};
	(void)state;
	play_seeds(seeds, sizeof seeds / sizeof seeds[0], all_by_name() | history_fault("uneven"));
}

/* A start that could not sync what it had read, read the segment again, and took what was there by then for that; one that
 * took one of two which were stored together, since the other could not be read again. */
static void and_those_where_syncs_fail(void **state)
{
	static const uint64_t seeds[] = {3110410}, of_two[] = {202745, 210164};
	static const char *const faults[] = {"sync", "kill", "gone", "die", "power", "away"};
	(void)state;
	static const char *const fewer[] = {"sync", "kill", "die", "uneven"};
	play_seeds(seeds, sizeof seeds / sizeof seeds[0],
		   faults_named(faults, sizeof faults / sizeof faults[0]));
	play_seeds(of_two, 2, faults_named(fewer, sizeof fewer / sizeof fewer[0]));
}

/* That do not know yet all that the one before had acknowledged. */
static void and_those_of_new_leaders(void **state)
{
	static const uint64_t seeds[] = {10, 13}, of_a_backup[] = {4501545};
	static const char *const faults[] = {"kill",  "gone",  "elect", "slow", "backup",
					     "order", "drain", "power", "doom"};
	(void)state;
	play_seeds(seeds, sizeof seeds / sizeof seeds[0], faults_named(faults, 4));
	play_seeds(of_a_backup, 1, faults_named(faults, sizeof faults / sizeof faults[0]));
}

static void and_those_of_large_content_that_is_taken(void **state)
{
	static const uint64_t seeds[] = {6324};
	static const char *const faults[] = {"pause", "away", "cut",  "doom",  "gone",
					     "die",   "kill", "slow", "uneven"};
	(void)state;
	play_seeds(seeds, 1, faults_named(faults, sizeof faults / sizeof faults[0]));
}

/* The same, of a message that was being delivered: its envelope of before counted, and it was put aside. */
static void and_those_of_uneven_ones(void **state)
{
	static const uint64_t seeds[] = {499430, 528783};
	(void)state;
	play_seeds(seeds, sizeof seeds / sizeof seeds[0],
		   all_by_name() | history_fault("uneven") | history_fault("sync"));
}

/* The folder of large content could not be opened at a start, and none of it was copied before another. A queue that had been given back
 * was taken once more, by a row as it had been before, and released at the next start. */
static void and_those_of_all_that_there_is(void **state)
{
	static const uint64_t seeds[] = {599795, 1362879};
	(void)state;
	play_seeds(seeds, sizeof seeds / sizeof seeds[0],
		   faults_of("kill,die,doom,power,pause,backup,empty,gone,tail,bucket,full,cut,"
			     "away,slow,clock,order,drain,retire,repair,list,unchecked,room,"
			     "read,sync,hold,elect,uneven"));
}

static void what_was_promised_is_kept_by_every_cluster(void **state)
{
	const char *seed = getenv("SEED"), *from = getenv("FROM"), *n = getenv("HISTORIES");
	const char *only = getenv("FAULTS"), *without = getenv("WITHOUT");
	(void)state;
	each = getenv("EACH");
	if (only || !(n || seed))
		allowed = faults_of(only ? only : "");
	if (without)
		allowed &= ~faults_of(without);
	share();
	if (seed) {
		play_loudly(strtoull(seed, NULL, 10));
		return;
	}
	long wanted = n ? atol(n) : QUIET;
	play_many(from ? strtoull(from, NULL, 10) : 1, wanted);
	for (int b = BROKEN_NONE + 1; b < BROKEN_SENTENCES; b++)
		if (tallies[b].n > 0)
			report((enum broken)b);
	printf("%ld histories, all well in %ld\n", wanted, tallies[BROKEN_NONE].n);
	assert_int_equal(tallies[BROKEN_NONE].n, wanted);
}

int main(void)
{
	/* What one history gives back is there for the next. */
	mallopt(M_MMAP_THRESHOLD, 1 << 28);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_that_vanishes_is_seen),
		cmocka_unit_test(mail_leaves_though_its_stream_is_full),
		cmocka_unit_test(who_adopts_what_left_then_names_it_in_doubt),
		cmocka_unit_test(what_a_taker_had_taken_is_taken_with_it),
		cmocka_unit_test(what_a_taker_had_taken_is_told_until_that_is_closed),
		cmocka_unit_test(what_a_lost_row_was_taken_by_is_not_released),
		cmocka_unit_test(what_an_unanswered_word_has_made_ours_is_ours),
		cmocka_unit_test(who_has_no_room_looks_for_what_the_bucket_has_lost),
		cmocka_unit_test(what_was_taken_before_is_released_before_more_is_taken),
		cmocka_unit_test(what_is_ours_with_another_is_said_of_each),
		cmocka_unit_test(what_is_refused_is_sent_by_no_adopter),
		cmocka_unit_test(what_a_taker_that_came_back_takes_is_no_orphan),
		cmocka_unit_test(orders_that_cross_leave_one_with_an_epoch),
		cmocka_unit_test(queues_that_were_claimed_crosswise_are_taken_by_a_third),
		cmocka_unit_test(what_is_removed_in_part_does_not_say_that_it_is_whole),
		cmocka_unit_test(a_queue_that_may_be_past_is_not_opened),
		cmocka_unit_test(those_that_were_found_are_mended),
		cmocka_unit_test(and_those_that_take_all_faults),
		cmocka_unit_test(and_those_of_uneven_histories),
		cmocka_unit_test(and_those_where_syncs_fail),
		cmocka_unit_test(and_those_of_uneven_ones),
		cmocka_unit_test(and_those_of_new_leaders),
		cmocka_unit_test(and_those_of_large_content_that_is_taken),
		cmocka_unit_test(and_those_of_all_that_there_is),
		cmocka_unit_test(what_was_promised_is_kept_by_every_cluster),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
