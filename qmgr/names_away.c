/* SPDX-License-Identifier: ISC */
#include "qmgr/names_away.h"

#include "base/mem.h"
#include "qmgr/dest/site.h"
#include "spool/spool.h"

#include <assert.h>
#include <stdlib.h>

static void call_mail_back(void *owner)
{
	struct names_away *a = owner;
	struct spool_unpark *note = mem_zalloc(sizeof *note);
	note->note.type = SPOOL_UNPARK;
	note->site = SPOOL_SITE_NAMES;
	note->most = UINT32_MAX;
	a->called_ms = a->loop->now_ms;
	a->edges->to_spool(a->edges->context, &note->note);
}

void names_away_init(struct names_away *a, struct loop *loop, const struct qmgr_edges *edges)
{
	*a = (struct names_away){.loop = loop, .edges = edges};
	timer_init(&a->again, call_mail_back, a);
}

void names_away_fini(struct names_away *a)
{
	timer_stop(&a->loop->timers, &a->again);
}

static bool has_failed_for(const struct names_away *a, uint64_t hop)
{
	assert(a->nfailed <= NAMES_AWAY_HOPS);
	for (int i = 0; i < a->nfailed; i++)
		if (a->failed[i] == hop)
			return true;
	return false;
}

void names_away_failed(struct names_away *a, uint64_t hop, bool found_before)
{
	assert(loop_is_ours(a->loop));
	bool counts = found_before || !a->heard;
	if (counts && a->nfailed < NAMES_AWAY_HOPS && !has_failed_for(a, hop))
		a->failed[a->nfailed++] = hop;
}

/* At once, or when it may be again. */
static void have_mail_called_back(struct names_away *a)
{
	int64_t at_ms = a->called_ms + NAMES_AWAY_EVERY_MS;
	if (timer_active(&a->again))
		return;
	if (a->called_ms > 0 && a->loop->now_ms < at_ms)
		loop_timer_in(a->loop, &a->again, at_ms - a->loop->now_ms);
	else
		call_mail_back(a);
}

void names_away_answered(struct names_away *a, uint64_t hop)
{
	assert(loop_is_ours(a->loop));
	bool was_away = a->nfailed == NAMES_AWAY_HOPS || has_failed_for(a, hop) ||
			(a->nfailed > 0 && !a->heard);
	a->heard = true;
	a->nfailed = 0;
	if (was_away)
		have_mail_called_back(a);
}

void names_away_called_back(struct spool_unpark *note)
{
	assert(note->site == SPOOL_SITE_NAMES);
	free(note);
}
