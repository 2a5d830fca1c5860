/* SPDX-License-Identifier: ISC */
#include "cluster/shares.h"

#include "base/clock.h"
#include "base/mem.h"
#include "cluster/lease.h"
#include "cluster/reserve.h"
#include "cluster/shares_core.h"

#include <assert.h>
#include <stdlib.h>

int64_t shares_nodes(const struct shares *s)
{
	return nodes_alive(s->seen);
}

bool shares_away(const struct shares *s)
{
	return !link_ready(s->link);
}

static void say_parts(struct shares *s)
{
	int64_t parts = shares_away(s) || s->refused ? shares_nodes(s) : 1;
	if (parts == s->parts || !s->watcher)
		return;
	struct sharing_parts *note = mailbox_note(sizeof *note, SHARING_PARTS);
	note->parts = s->parts = parts;
	loop_post(s->watcher, &note->note);
}

void shares_answered(struct shares *s, bool good)
{
	assert(loop_is_ours(s->loop));
	if (s->refused && good)
		s->since_ms = clock_steady_ms();
	s->refused = !good;
	say_parts(s);
}

bool shares_numbers(const redisReply *r, int n, int64_t to[])
{
	if (!resp_is_array(r, (size_t)n))
		return false;
	for (int i = 0; i < n; i++) {
		if (r->element[i]->type != REDIS_REPLY_INTEGER || r->element[i]->integer < 0 ||
		    r->element[i]->integer > SHARES_NUMBER_MAX)
			return false;
		to[i] = r->element[i]->integer;
	}
	return true;
}

static void on_link(void *owner, bool ready)
{
	struct shares *s = owner;
	(void)ready;
	if (s->stopped)
		return;
	s->since_ms = clock_steady_ms();
	s->refused = false;
	say_parts(s);
	lease_table_look(s);
	reserve_table_look(s);
}

struct shares *shares_new(struct loop *loop, struct link *link, const char *node,
			  const struct nodes *seen)
{
	struct shares *s = mem_zalloc(sizeof *s);
	s->loop = loop;
	s->link = link;
	s->node = mem_strdup(node);
	s->seen = seen;
	s->parts = 1;
	s->since_ms = clock_steady_ms();
	link_script_init(&s->lease_script, lease_script);
	link_script_init(&s->reserve_script, reserve_script);
	link_watch(link, on_link, s);
	return s;
}

void shares_free(struct shares **sp)
{
	struct shares *s = mem_take(sp);
	if (!s)
		return;
	assert(s->stopped);
	lease_table_free(s);
	reserve_table_free(s);
	assert(!s->lease && !s->reserve);
	free(s->node);
	free(s);
}

void shares_watch(struct shares *s, struct loop *watcher)
{
	s->watcher = watcher;
}

void shares_stop(struct shares *s)
{
	s->stopped = true;
}

bool shares_take(struct shares *s, struct note *note)
{
	assert(loop_is_ours(s->loop));
	switch (note->type) {
	case SHARING_NEED:
		lease_table_take(s, (struct sharing_need *)note);
		return true;
	case SHARING_WANT:
		reserve_table_want(s, (struct sharing_want *)note);
		return true;
	case SHARING_SPENT:
		reserve_table_spent(s, (struct sharing_spent *)note);
		return true;
	default:
		return false;
	}
}
