/* SPDX-License-Identifier: ISC */
#include "cmd/watch/table_watch.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/tables.h"
#include "base/words.h"

#include <assert.h>
#include <stdlib.h>

enum { LOOK_MS = 1000 };

struct table_watch {
	struct loop *loop;
	struct timer look;
	const struct conf *conf;
	void (*changed)(void *owner);
	void *owner;
};

static void look_at_tables(void *owner)
{
	struct table_watch *w = owner;
	assert(w->conf);
	loop_timer_in(w->loop, &w->look, LOOK_MS);
	if (tables_stale(w->conf->tables))
		w->changed(w->owner);
}

struct table_watch *table_watch_new(struct loop *loop, void (*changed)(void *owner), void *owner)
{
	struct table_watch *w = mem_zalloc(sizeof *w);
	w->loop = loop;
	w->changed = changed;
	w->owner = owner;
	timer_init(&w->look, look_at_tables, w);
	return w;
}

void table_watch_free(struct table_watch **wp)
{
	struct table_watch *w = mem_take(wp);
	if (!w)
		return;
	timer_stop(&w->loop->timers, &w->look);
	free(w);
}

void table_watch_start(struct table_watch *w, const struct conf *conf)
{
	w->conf = conf;
	if (!timer_active(&w->look))
		loop_timer_in(w->loop, &w->look, LOOK_MS);
}

static void say_faults(const char *text)
{
	for (char *line; (line = words_line(&text)); free(line))
		log_event(LOG_LEVEL_ERROR, "tables", "message",
			  log_text("%s; what it said before stays", line), NULL);
}

struct conf *table_watch_renew(struct conf *conf)
{
	struct conf_faults faults = {0};
	struct buf says = {0};
	struct tables *tables = tables_renew(conf, &faults);
	conf_faults_say(&faults, &says);
	say_faults(buf_cstr(&says));
	if (faults.n == 0)
		log_event(LOG_LEVEL_INFO, "tables", "message", "read anew", NULL);
	conf_faults_fini(&faults);
	buf_fini(&says);
	return conf_with_tables(conf, tables);
}
