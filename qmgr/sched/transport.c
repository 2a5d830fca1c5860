/* SPDX-License-Identifier: ISC */
#include "qmgr/sched/transport.h"

#include "base/mem.h"
#include "qmgr/sched/selection.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void take_settings(struct transport *t, struct conf *conf,
			  const struct conf_transport *settings)
{
	struct conf *old = t->conf;
	if (old)
		t->rcpt_unused += settings->recipient_limit - t->settings->recipient_limit;
	t->conf = conf_ref(conf);
	t->settings = settings;
	conf_unref(old);
}

static struct metric_cell *outcome_cell(const char *title, int class)
{
	return metric_cell(FAMILY_deliveries, verdict_class_name((enum verdict_class) class),
			   title);
}

/* A counter that begins at zero shows its first step. */
void transports_count(const struct conf *conf)
{
	for (int i = 0; i < conf->ntransport; i++)
		for (int class = 0; class < VERDICT_CLASSES; class ++)
			outcome_cell(conf->transport[i].title, class);
}

struct transport *transport_get(struct scheduler *sched, const struct conf_transport *settings)
{
	struct transport *t = sched->asked;
	if (t && t->settings == settings)
		return t;
	HASH_FIND_STR(sched->transports, settings->title, t);
	sched->asked = t;
	if (t)
		return t;
	t = mem_zalloc(sizeof *t);
	t->title = mem_strdup(settings->title);
	t->scheduler = sched;
	list_init(&t->jobs);
	list_init(&t->idle);
	list_init(&t->silent);
	list_init(&t->turned);
	list_init(&t->stalled);
	list_init(&t->probing);
	list_init(&t->parked);
	selection_init(t);
	take_settings(t, sched->conf, settings);
	for (int class = 0; class < VERDICT_CLASSES; class ++)
		t->outcome[class] = outcome_cell(t->title, class);
	t->rcpt_unused = t->settings->recipient_limit;
	HASH_ADD_KEYPTR(hh, sched->transports, t->title, strlen(t->title), t);
	return t;
}

void transports_configure(struct scheduler *sched, struct conf *conf)
{
	transports_count(conf);
	for (int i = 0; i < conf->ntransport; i++) {
		struct transport *t;
		HASH_FIND_STR(sched->transports, conf->transport[i].title, t);
		if (t)
			take_settings(t, conf, &conf->transport[i]);
	}
}

bool transport_full(const struct transport *t)
{
	int64_t limit = t->settings->connection_limit;
	return limit > 0 && t->connections >= limit;
}

int transport_ending(const struct transport *t)
{
	assert(t->ending >= t->nlingering);
	return t->ending - t->nlingering;
}

int64_t transport_wanting(const struct transport *t)
{
	return t->nqueue[QUEUE_BARE] + t->nqueue[QUEUE_HUNGRY];
}

void transports_free(struct scheduler *sched)
{
	struct transport *t, *tmp;
	HASH_ITER(hh, sched->transports, t, tmp)
	{
		assert(list_empty(&t->jobs) && t->rcpt_count == 0 && !t->next_unread);
		assert(t->connections == 0 && t->ending == 0 && t->nunready == 0);
		assert(list_empty(&t->idle) && list_empty(&t->silent) && list_empty(&t->turned));
		assert(list_empty(&t->stalled) && list_empty(&t->probing) &&
		       list_empty(&t->parked));
		assert(t->nqueue[QUEUE_QUIET] == 0);
		HASH_DEL(sched->transports, t);
		selection_fini(t);
		conf_unref(t->conf);
		free(t->title);
		free(t);
	}
}
