/* SPDX-License-Identifier: ISC */
#include "qmgr/suppress_command.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mailaddr.h"
#include "base/mem.h"
#include "base/name_key.h"
#include "base/text_note.h"
#include "qmgr/qmgr_thread.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct suppress_command *suppress_command_new(enum suppress_order op, const char *address,
					      struct loop *reply_to, void *owner)
{
	struct suppress_command *c = mem_zalloc(sizeof *c);
	assert(address || op == SUPPRESS_LIST);
	c->note.type = SUPPRESS_COMMAND;
	c->op = op;
	c->address = address ? mem_strdup(address) : NULL;
	c->reply_to = reply_to;
	c->owner = owner;
	return c;
}

void suppress_command_free(struct suppress_command **cp)
{
	struct suppress_command *c = *cp;
	for (int i = 0; c->row && i < c->found; i++) {
		free(c->row[i].address);
		free(c->row[i].host);
	}
	free(c->row);
	free(c->address);
	free(c);
	*cp = NULL;
}

static void log_change(const char *address, const char *state)
{
	log_event(LOG_LEVEL_INFO, "suppress", "to", address, "state", state, "reason", "operator",
		  NULL);
}

/* As the command names them: key is what name_key() makes of that. */
static bool is_meant(const struct suppressed_one *one, const char *key)
{
	if (!key)
		return true;
	return *key == '@' ? strcmp(mailaddr_domain(one->address), key + 1) == 0
			   : strcmp(one->address, key) == 0;
}

static void describe_one(const struct suppressed_one *one, int64_t keep_ms, struct suppress_row *to)
{
	*to = (struct suppress_row){.address = mem_strdup(one->address),
				    .host = mem_strdup(one->host),
				    .since_ms = one->since_ms,
				    .last_ms = one->last_ms,
				    .until_ms = keep_ms > 0 ? one->last_ms + keep_ms : 0};
}

static void list_suppressed(const struct qmgr *q, struct suppress_command *c, const char *key)
{
	c->row = mem_zalloc(((size_t)q->suppressed.n + 1) * sizeof *c->row);
	list_each (link, tmp, &q->suppressed.by_time) {
		const struct suppressed_one *one = list_entry(link, struct suppressed_one, by_time);
		if (is_meant(one, key))
			describe_one(one, q->sched.conf->suppress_most, &c->row[c->found++]);
	}
	assert(c->found <= q->suppressed.n);
}

static void add_address(struct qmgr *q, struct suppress_command *c)
{
	c->off = q->sched.conf->suppress_most == 0;
	if (c->off)
		return;
	c->found = 1;
	suppressed_note(&q->suppressed, c->address, "", clock_wall_ms());
	log_change(c->address, "added");
}

static void forget_addresses(struct qmgr *q, struct suppress_command *c, const char *key)
{
	list_each (link, tmp, &q->suppressed.by_time) {
		struct suppressed_one *one = list_entry(link, struct suppressed_one, by_time);
		if (!is_meant(one, key))
			continue;
		log_change(one->address, "forgotten");
		suppressed_drop(&q->suppressed, one);
		c->found++;
	}
}

void suppress_save(struct qmgr *q)
{
	if (!q->suppressed.changed || !q->db.edges.to_main)
		return;
	struct buf text = {0};
	suppressed_write(&q->suppressed, &text);
	q->db.edges.to_main(q->db.edges.context, text_note_new(SUPPRESS_SAVE, &text));
	q->suppressed.changed = false;
}

void suppress_execute(struct qmgr *q, struct suppress_command *c)
{
	char *key = c->address ? name_key(c->address) : NULL;
	assert(c->found == 0 && !c->row);
	suppressed_age(&q->suppressed, clock_wall_ms(), q->sched.conf->suppress_most);
	if (c->op == SUPPRESS_LIST)
		list_suppressed(q, c, key);
	else if (c->op == SUPPRESS_ADD)
		add_address(q, c);
	else
		forget_addresses(q, c, key);
	if (c->op != SUPPRESS_LIST)
		suppress_save(q);
	free(key);
	loop_post(c->reply_to, &c->note);
}
