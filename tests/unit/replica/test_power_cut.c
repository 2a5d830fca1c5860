/* SPDX-License-Identifier: ISC */
/* What a node writes down of itself, and what it makes of another's queue, outlives a power cut as soon as it is said. */
#include "tests/unit/base/unit.h"

#include "base/crc32c.h"
#include "replica/format.h"
#include "replica/life.h"
#include "replica/rebuild.h"
#include "spool/disk.h"
#include "tests/unit/spool/memdisk.h"

#include <fcntl.h>
#include <string.h>

enum { CUTS = 40 };

static struct memdisk *disk;
static struct chance power;

static int set_up(void **state)
{
	(void)state;
	disk = memdisk_new();
	memdisk_use(disk, NULL, NULL);
	return disk_make_folder(AT_FDCWD, "/queue");
}

static int tear_down(void **state)
{
	(void)state;
	memdisk_free(&disk);
	return 0;
}

/* Look at what cuts now would leave. */
static void in_each_cut(void (*look)(void))
{
	for (int i = 0; i < CUTS; i++) {
		struct memdisk *cut = memdisk_cut(disk, &power);
		memdisk_use(cut, NULL, NULL);
		look();
		memdisk_free(&cut);
	}
	memdisk_use(disk, NULL, NULL);
}

static void sync_queue(void)
{
	for (const char *name = "/"; name; name = strcmp(name, "/") == 0 ? "/queue" : NULL) {
		int fd = disk_open(AT_FDCWD, name, O_RDONLY | O_DIRECTORY);
		assert_int_equal(disk_sync(fd), 0);
		disk_close(fd);
	}
}

static struct epoch_own own;

static void own_is_there(void)
{
	struct epoch_own found;
	assert_true(life_read("/queue", &found));
	assert_true(found.life == own.life && found.epoch == own.epoch);
}

static void an_epoch_that_was_taken_is_remembered(void **state)
{
	(void)state;
	sync_queue();
	for (own = (struct epoch_own){.life = 7, .epoch = 1}; own.epoch < 4; own.epoch++) {
		assert_true(life_write("/queue", &own));
		in_each_cut(own_is_there);
	}
}

static void holds(const char *path, const char *text)
{
	char found[20] = "";
	int fd = disk_open(AT_FDCWD, path, O_RDONLY);
	assert_true(fd >= 0);
	disk_read(fd, found, strlen(text), 0);
	assert_string_equal(found, text);
	disk_close(fd);
}

static void queue_is_there(void)
{
	holds("/queue/log/0000000000000007.seg", "records");
	holds("/queue/log/checkpoint", "checkpoint");
	holds("/queue/large/0000000000001", "content");
	holds("/queue/format", "sluice spool 2\n");
}

static void say(int file, uint64_t *end, enum replica_type type, uint64_t of, const char *text)
{
	uint8_t message[REPLICA_HEAD + 100];
	size_t len = strlen(text);
	struct replica_head h = {.type = type,
				 .epoch = 3,
				 .of = of,
				 .size = type == REPLICA_LARGE_END ? 7 : len,
				 .length = (uint32_t)len,
				 .crc = crc32c(0, text, len)};
	replica_head_put(message, &h);
	memcpy(message + REPLICA_HEAD, text, len);
	assert_true(rebuild_keep(file, end, message, REPLICA_HEAD + len));
}

static void a_queue_that_was_made_again_stays(void **state)
{
	(void)state;
	uint64_t end = 0;
	bool hollow;
	sync_queue();
	int folder = disk_open(AT_FDCWD, "/queue", O_RDONLY | O_DIRECTORY);
	int file = disk_open(folder, "stream", O_RDWR | O_CREAT);
	say(file, &end, REPLICA_LOG, 7, "records");
	say(file, &end, REPLICA_LARGE, 1, "content");
	say(file, &end, REPLICA_LARGE_END, 1, "");
	say(file, &end, REPLICA_COMPLETE, 0, "checkpoint");
	assert_true(rebuild_run(folder, file, end, 1, &hollow));
	in_each_cut(queue_is_there);
	disk_close(file);
	disk_close(folder);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_epoch_that_was_taken_is_remembered),
		TEST(a_queue_that_was_made_again_stays),
	};
	return RUN(tests);
}
