/* SPDX-License-Identifier: ISC */
/* The model of the disk: content of any size at no cost, and reports stored
 * after a while. */
#include "sim/stage.h"

#include "base/mem.h"
#include "spool/spool.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* A report on its way to the disk. */
struct storing {
	struct stage *stage;
	struct spool_store *note;
	struct list link;
	struct timer timer;
};

static const char beginning[] = "From: sender@sim.test\r\nSubject: simulated\r\n\r\n";

struct content_file *model_disk_blank(void)
{
	int fd = memfd_create("sluice-sim", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, (off_t)1 << 40) < 0 ||
	    pwrite(fd, beginning, sizeof beginning - 1, 0) < 0) {
		perror("sluice: memfd_create");
		abort();
	}
	return content_file_new(fd);
}

static void on_stored(void *owner)
{
	struct storing *storing = owner;
	struct spool_store *note = storing->note;
	envelope_free(&note->envelope);
	content_unref(note->content);
	note->content = NULL;
	note->stored = true;
	note->note.type = SPOOL_STORED;
	storing->stage->tally->reports++;
	stage_post(storing->stage, &note->note);
	list_remove(&storing->link);
	free(storing);
}

void model_disk_store(struct stage *st, struct spool_store *note)
{
	struct storing *storing = mem_zalloc(sizeof *storing);
	storing->stage = st;
	storing->note = note;
	timer_init(&storing->timer, on_stored, storing);
	list_append(&st->stores, &storing->link);
	stage_after(st, &storing->timer, stage_us(st->scenario->simulation.commit_latency));
}

void model_disk_fini(struct stage *st)
{
	list_each_entry (struct storing, storing, link, &st->stores) {
		envelope_free(&storing->note->envelope);
		content_unref(storing->note->content);
		free(storing->note);
		free(storing);
	}
}
