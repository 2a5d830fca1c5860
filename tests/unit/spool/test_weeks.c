/* SPDX-License-Identifier: ISC */
/* Three weeks of traffic under a clock of its own, or DAYS=n: whatever mix of ages waits, the log takes at most
 * 2.5 times what is needed of it, and a few segments. */
#include "tests/unit/base/unit.h"

#include "base/clock.h"
#include "base/ident.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "tests/unit/spool/chance.h"
#include "tests/unit/spool/edges.h"
#include "tests/unit/spool/memdisk.h"
#include "spool/spool.h"

#include <stdlib.h>
#include <string.h>

enum {
	SEGMENT = 64 << 10,
	FEW = 16 * SEGMENT, /* current and next, seven lanes, the reserve, spare ones, and
			       what is being emptied */
	DAYS = 21,
	DAY = 24, /* hours */
	MOST = 4000,
	HOUR_MS = 3600 * 1000,
};

static struct memdisk *disk;
static struct conf *conf;
static struct loop *client;
static struct spool *spool;
static struct chance chance;
static struct envelope *held[MOST];
static int nheld;
static int64_t stored, worst_percent;

static void receive(void *owner, struct note *note)
{
	(void)owner;
	if (note->type == SPOOL_ARRIVAL) {
		struct spool_arrival *a = (struct spool_arrival *)note;
		held[nheld++] = a->envelope;
		content_unref(a->content);
	} else if (note->type == SPOOL_STORED) {
		assert_true(((struct spool_store *)note)->stored);
		stored++;
	} else if (note->type == SPOOL_MOVED) {
		content_unref(((struct spool_moved *)note)->content);
	}
	free(note);
}

static void store(size_t size)
{
	struct spool_store *s = mem_zalloc(sizeof *s);
	s->note.type = SPOOL_STORE;
	s->reply_to = client;
	s->envelope = envelope_new();
	s->envelope->id = ident_new();
	s->envelope->arrived_ms = clock_wall_ms();
	s->envelope->sender = mem_strdup("sender@example.org");
	s->envelope->size = size;
	envelope_add(s->envelope, "recipient@example.com");
	char *bytes = mem_alloc(size);
	memset(bytes, 'x', size);
	s->content = content_in_memory(bytes, size);
	loop_post(spool_loop(spool), &s->note);
}

static void release(struct envelope *e, bool keep)
{
	struct spool_release *r = mem_zalloc(sizeof *r);
	r->note.type = SPOOL_RELEASE;
	r->id = e->id;
	r->envelope = keep ? e : NULL;
	if (!keep)
		envelope_free(&e);
	loop_post(spool_loop(spool), &r->note);
}

/* Most of it is delivered at once; some destinations are away for hours, some for good, which is five
 * days; a few messages are worked on for long. */
static void work(void)
{
	for (int i = nheld; i > 0; i--) {
		struct envelope *e = held[i - 1];
		int64_t age_ms = clock_wall_ms() - e->arrived_ms;
		uint32_t kind = (uint32_t)(e->id * UINT64_C(0x9e3779b97f4a7c15) >> 40) % 100;
		if (kind == 0 && age_ms < 6 * HOUR_MS)
			continue; /* its destination is slow */
		held[i - 1] = held[--nheld];
		bool away = (kind < 4 && age_ms < 120 * (int64_t)HOUR_MS) ||
			    (kind < 15 && age_ms < 5 * (int64_t)HOUR_MS);
		e->rounds++;
		e->due_ms = clock_wall_ms() + (age_ms < 300000	  ? 300000
					       : age_ms < 4000000 ? age_ms
								  : 4000000);
		release(e, away);
	}
}

static void sum(void *owner, const char *name, int fd)
{
	uint64_t bytes;
	int64_t changed_ms;
	if (strstr(name, ".seg") && disk_size(fd, &bytes, &changed_ms) == 0)
		*(uint64_t *)owner += bytes;
}

static void look(int hour)
{
	uint64_t bytes = 0;
	memdisk_files(disk, sum, &bytes);
	uint64_t live = (uint64_t)metrics_sum(METRIC_queue_live_bytes);
	if (bytes > live * 5 / 2 + FEW)
		fail_msg("hour %d: %llu bytes, of which %llu are needed", hour,
			 (unsigned long long)bytes, (unsigned long long)live);
	int64_t percent = live ? (int64_t)(bytes * 100 / (live * 5 / 2 + FEW)) : 0;
	worst_percent = percent > worst_percent ? percent : worst_percent;
}

static void start(void)
{
	struct buf error;
	buf_init(&error);
	spool = spool_new(conf, client, &error);
	assert_non_null(spool);
	buf_fini(&error);
	spool_start(spool);
	struct spool_credit *c = mem_zalloc(sizeof *c);
	c->note.type = SPOOL_CREDIT;
	c->n = MOST;
	loop_post(spool_loop(spool), &c->note);
	edges_settle();
}

static void stop(void)
{
	spool_stop(spool);
	spool_free(&spool);
	edges_settle();
	while (nheld > 0)
		envelope_free(&held[--nheld]);
}

static void three_weeks_of_traffic_keep_the_log_small(void **state)
{
	(void)state;
	edges_begin();
	edges_stepped(false);
	disk = memdisk_new();
	memdisk_use(disk, NULL, NULL);
	memdisk_room(disk, INT64_C(1) << 40);
	chance = (struct chance){.state = 1};
	conf = conf_defaults();
	conf->segment_size = SEGMENT;
	client = loop_new("client", receive, NULL, NULL);
	loop_start(client);
	start();
	const char *days = getenv("DAYS");
	int hours = (days ? atoi(days) : DAYS) * DAY;
	int64_t sent = 0;
	for (int hour = 0; hour < hours; hour++) {
		/* Busy days, quiet nights, and a flood now and then. */
		int rate = hour % DAY < 8 ? 2 : hour % 50 == 0 ? 60 : 12;
		for (int part = 0; part < 6; part++) {
			for (int i = 0; i < rate; i++, sent++)
				store(200 + (size_t)chance_below(&chance, 9000));
			edges_pass(HOUR_MS / 6);
			work();
			edges_settle();
		}
		edges_pass(2000);
		look(hour);
		if (hour % 100 == 99) {
			stop();
			start();
		}
	}
	assert_int_equal(stored, sent);
	assert_true(metrics_sum(METRIC_compacted_bytes) > 0);
	print_message("%lld messages, %lld bytes moved, at most %lld %% of what is allowed\n",
		      (long long)sent, (long long)metrics_sum(METRIC_compacted_bytes),
		      (long long)worst_percent);
	stop();
	loop_free(&client);
	conf_unref(conf);
	memdisk_free(&disk);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(three_weeks_of_traffic_keep_the_log_small),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
