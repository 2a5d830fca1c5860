/* SPDX-License-Identifier: ISC */
#include "cmd/watch/clock_watch.h"

#include "base/clock.h"
#include "base/date.h"
#include "base/file_io.h"
#include "base/ident.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	LOOK_MS = 1000,
	FOLLOW_MS = 60000,
	WRITE_MS = 60000,
	EMPTY_LOOKS = 60, /* a queue that is being read at a start looks empty too */
	BOOT_ID = 36,
	LINE = 128,
};

#define FILE_NAME "clock"

static const char inheritance[] = "SLUICE_BOOT";

struct clock_watch {
	struct loop *loop;
	struct timer look;
	char *spool;
	char boot[BOOT_ID +
		  1];	    /* "-" where that can't be read, as after a restart in the sandbox */
	int empty;	    /* looks in a row at an empty queue */
	bool apart;	    /* from the system's clock, and said */
	int64_t written_ms; /* steady clock */
};

/* The next program in this process is told, and may not read it; where nobody may, chance will do. */
static void find_boot(struct clock_watch *w)
{
	const char *told = getenv(inheritance);
	int fd = told ? -1 : open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	if (told)
		snprintf(w->boot, sizeof w->boot, "%s", told);
	else if (fd < 0 || read(fd, w->boot, BOOT_ID) != BOOT_ID)
		ident_text(ident_new(), w->boot);
	file_close(fd);
	setenv(inheritance, w->boot, 1);
}

static bool read_file(const struct clock_watch *w, char line[LINE])
{
	int folder = open(w->spool, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd = folder < 0 ? -1 : openat(folder, FILE_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t n = fd < 0 ? -1 : read(fd, line, LINE - 1);
	file_close(fd);
	file_close(folder);
	line[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* Whole or not at all, for who reads it in this boot; after a power cut an older one does. */
static void write_file(struct clock_watch *w)
{
	char line[LINE];
	int n = snprintf(line, sizeof line, "%" PRId64 " %" PRId64 " %s %" PRId64 "\n",
			 clock_wall_ms(), clock_up_ms(), w->boot, clock_system_ms());
	int folder = open(w->spool, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd = folder < 0 ? -1
			    : openat(folder, FILE_NAME ".new",
				     O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0 && write(fd, line, (size_t)n) == n)
		renameat(folder, FILE_NAME ".new", folder, FILE_NAME);
	file_close(fd);
	file_close(folder);
	w->written_ms = clock_steady_ms();
}

/* The time at which the queue goes on. Earlier versions wrote no date: the queue's time then stands for it. */
static int64_t begin_at(const struct clock_watch *w)
{
	char line[LINE], boot[BOOT_ID + 1];
	int64_t at_ms, up_ms, date_ms, system_ms = clock_system_ms();
	int n = read_file(w, line) ? sscanf(line, "%" SCNd64 " %" SCNd64 " %36s %" SCNd64, &at_ms,
					    &up_ms, boot, &date_ms)
				   : 0;
	if (n < 3)
		return system_ms;
	bool same = strcmp(boot, w->boot) == 0;
	int64_t passed_ms = same ? clock_up_ms() - up_ms : system_ms - (n == 4 ? date_ms : at_ms);
	if (passed_ms >= 0)
		return at_ms + passed_ms;
	return system_ms < at_ms ? at_ms : system_ms;
}

static bool queue_empty(void)
{
	return metrics_sum(METRIC_queue_incoming) <= 0 && metrics_sum(METRIC_queue_active) <= 0 &&
	       metrics_sum(METRIC_queue_deferred) <= 0 && metrics_sum(METRIC_queue_hold) <= 0;
}

static bool is_near(int64_t ahead_ms)
{
	return llabs(ahead_ms) <= FOLLOW_MS;
}

static void set_both_clocks(int64_t wall_ms, int64_t ahead_ms)
{
	clock_set_wall(wall_ms);
	date_set(ahead_ms);
}

void clock_watch_read(const char *spool)
{
	struct clock_watch w = {.spool = (char *)(size_t)spool};
	find_boot(&w);
	int64_t system_ms = clock_system_ms(), at_ms = begin_at(&w), ahead_ms = system_ms - at_ms;
	set_both_clocks(is_near(ahead_ms) ? system_ms : at_ms, is_near(ahead_ms) ? 0 : ahead_ms);
}

static void follow_system(struct clock_watch *w, int64_t ahead_ms)
{
	set_both_clocks(clock_wall_ms() + ahead_ms, 0);
	if (w->apart)
		log_event(LOG_LEVEL_INFO, "clock", "ahead", log_seconds(ahead_ms), "reason",
			  "the queue goes by the system's clock again", NULL);
	w->apart = false;
}

static void stay_apart(struct clock_watch *w, int64_t ahead_ms)
{
	date_set(ahead_ms);
	if (!w->apart)
		log_event(LOG_LEVEL_WARNING, "clock", "ahead", log_seconds(ahead_ms), "reason",
			  "the system's clock was set; ages and times of retries go on as before, "
			  "until it is set back or the queue is empty",
			  NULL);
	w->apart = true;
}

static void compare_clocks(struct clock_watch *w)
{
	int64_t ahead_ms = clock_system_ms() - clock_wall_ms();
	if (is_near(ahead_ms) || w->empty >= EMPTY_LOOKS)
		follow_system(w, ahead_ms);
	else
		stay_apart(w, ahead_ms);
}

static void look_at_clock(void *owner)
{
	struct clock_watch *w = owner;
	w->empty = queue_empty() ? w->empty + 1 : 0;
	compare_clocks(w);
	if (clock_steady_ms() - w->written_ms >= WRITE_MS)
		write_file(w);
	loop_timer_in(w->loop, &w->look, LOOK_MS);
}

struct clock_watch *clock_watch_new(struct loop *loop, const char *spool)
{
	struct clock_watch *w = mem_zalloc(sizeof *w);
	w->loop = loop;
	w->spool = mem_strdup(spool);
	timer_init(&w->look, look_at_clock, w);
	find_boot(w);
	clock_set_wall(begin_at(w));
	compare_clocks(w);
	return w;
}

void clock_watch_start(struct clock_watch *w)
{
	write_file(w);
	loop_timer_in(w->loop, &w->look, LOOK_MS);
}

void clock_watch_free(struct clock_watch **wp)
{
	struct clock_watch *w = *wp;
	if (!w)
		return;
	if (w->written_ms)
		write_file(w);
	timer_stop(&w->loop->timers, &w->look);
	free(w->spool);
	free(w);
	*wp = NULL;
}
