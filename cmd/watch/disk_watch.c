/* SPDX-License-Identifier: ISC */
#include "cmd/watch/disk_watch.h"

#include "base/condition.h"
#include "base/mem.h"
#include "spool/spool.h"

#include <assert.h>
#include <stdlib.h>

enum { LOOK_MS = 1000, STANDS_LOOKS = 10 };

struct disk_watch {
	struct loop *loop;
	const struct spool *spool;
	struct timer look;
	int64_t began_ms; /* the turn that ran at the last look; 0: none did */
	int looks;	  /* before, at which it was the same */
};

static void look_at_turn(void *owner)
{
	struct disk_watch *w = owner;
	assert(loop_is_ours(w->loop));
	int64_t began_ms = spool_turn_began_ms(w->spool);
	bool same = began_ms && began_ms == w->began_ms;
	bool stood = w->looks >= STANDS_LOOKS;
	w->looks = same ? w->looks + 1 : 0;
	w->began_ms = began_ms;
	if (stood != (w->looks >= STANDS_LOOKS))
		condition_turn(CONDITION_disk_stands, !stood, "", NULL);
	loop_timer_in(w->loop, &w->look, LOOK_MS);
}

struct disk_watch *disk_watch_new(struct loop *loop, const struct spool *spool)
{
	struct disk_watch *w = mem_zalloc(sizeof *w);
	w->loop = loop;
	w->spool = spool;
	timer_init(&w->look, look_at_turn, w);
	loop_timer_in(loop, &w->look, LOOK_MS);
	return w;
}

void disk_watch_free(struct disk_watch **wp)
{
	struct disk_watch *w = mem_take(wp);
	if (!w)
		return;
	timer_stop(&w->loop->timers, &w->look);
	free(w);
}
