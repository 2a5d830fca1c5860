/* SPDX-License-Identifier: ISC */
#include "qmgr/dest/destdb_text.h"

#include "base/clock.h"
#include "base/words.h"
#include "qmgr/dest/destdb.h"
#include "qmgr/dest/fields.h"
#include "qmgr/dest/host_text.h"
#include "qmgr/dest/pooling.h"
#include "qmgr/dest/provider.h"
#include "qmgr/dest/remembered.h"
#include "qmgr/dest/suspend.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SHUT_MOST_MS (INT64_C(30) * 24 * 3600000) /* as maximal_backoff_time */

static bool worth_keeping(const struct host *h, int64_t now_ms)
{
	return h->proven || h->failures > 0 || h->plain || h->depth > 1 ||
	       h->mode_until_ms > now_ms || h->messages_until_ms > now_ms ||
	       h->recipients_until_ms > now_ms || h->limit.n > 0;
}

static void put_host(struct buf *to, const struct host *h)
{
	buf_printf(to, "host\tkey=%s", h->key);
	host_text_put_all(to, h);
	buf_puts(to, "\n");
	for (const struct host_plain *p = h->plain; p; p = p->next) {
		buf_printf(to, "plain\tkey=%s", h->key);
		host_text_put_plain(to, p);
		buf_puts(to, "\n");
	}
}

static void put_site(struct buf *to, const struct remembered *r)
{
	buf_printf(to, "%s\tkey=%s", remembered_is_provider(r) ? "provider" : "site", r->key);
	fields_put_number(to, "apart", !r->mixed);
	fields_put_number(to, "window", r->concurrency);
	fields_put_number(to, "at", r->at_ms);
	fields_put_number(to, "pace", host_pace_units(r->pace));
	if (r->pace > 0) {
		fields_put_number(to, "since", r->since_ms);
		fields_put_number(to, "refused", r->refused_ms);
		host_text_put_reply(to, r->why);
	}
	fields_put_number(to, "shut", r->shut_ms);
	fields_put_number(to, "shut_for", r->shut_for_ms);
	buf_puts(to, "\n");
}

static void put_suspended(struct buf *to, const struct suspended *n)
{
	buf_printf(to, "suspended\t%s=%s", suspend_kind_name(n->kind), n->name);
	fields_put_number(to, "until", n->until_ms);
	buf_puts(to, "\n");
}

void destdb_write(struct destdb *db, struct buf *to)
{
	int64_t now_ms = clock_steady_ms();
	for (const struct host *h = db->hosts; h; h = h->hh.next)
		if (worth_keeping(h, now_ms))
			put_host(to, h);
	for (const struct site *s = db->sites; s; s = s->hh.next)
		remembered_keep(s);
	for (const struct provider *p = db->providers; p; p = p->hh.next)
		remembered_keep_provider(p);
	remembered_age(db);
	for (const struct remembered *r = db->remembered; r; r = r->hh.next)
		put_site(to, r);
	for (const struct suspended *n = db->suspended; n; n = n->hh.next)
		put_suspended(to, n);
}

static void read_host(struct destdb *db, const char *line, struct buf *room)
{
	union address address;
	const char *key = host_text_address(line, &address) ? fields_get(line, "key", room) : NULL;
	if (!key)
		return;
	struct host *h = destdb_host(db, key, &address);
	h->opened_ms = clock_steady_ms(); /* used lately */
	host_text_read_all(h, line, room);
	pooling_quiet(h);
}

static void read_plain(struct destdb *db, const char *line, struct buf *room)
{
	struct host *h = NULL;
	const char *key = fields_get(line, "key", room);
	if (key)
		HASH_FIND_STR(db->hosts, key, h);
	int64_t until_ms = fields_future(line, "until", room, HOST_PLAIN_MS);
	const char *name = h && until_ms ? fields_get(line, "name", room) : NULL;
	if (name)
		host_set_plain(h, name, until_ms);
}

static void read_site(struct destdb *db, const char *line, struct buf *room)
{
	int window = (int)fields_measured(line, "window", room, HOST_COUNT_MAX);
	int64_t at_ms = fields_number(line, "at", room);
	int64_t pace = fields_measured(line, "pace", room, HOST_PACE_MOST);
	int64_t since_ms = fields_number(line, "since", room);
	int64_t refused_ms = fields_number(line, "refused", room);
	int64_t shut_for_ms = fields_measured(line, "shut_for", room, SHUT_MOST_MS);
	int64_t shut_ms = fields_measured(line, "shut", room, INT64_MAX / 2);
	struct verdict *why = pace > 0 ? host_text_reply(line, room) : NULL;
	const char *key = fields_get(line, "key", room);
	if (key && (window > 0 || pace > 0 || shut_for_ms > 0)) {
		struct remembered *r = remembered_add(db, key, window, at_ms);
		verdict_unref(r->why);
		r->mixed = !fields_number(line, "apart", room);
		r->pace = (double)pace / HOST_PACE_UNIT;
		r->since_ms = since_ms;
		r->refused_ms = refused_ms;
		r->shut_ms = shut_ms;
		r->shut_for_ms = shut_for_ms;
		r->why = verdict_ref(why);
	}
	verdict_unref(why);
}

/* False: one of them has ended, and the file is to say so. */
static bool read_suspended(struct destdb *db, const char *line, struct buf *room)
{
	int64_t until_ms = fields_number(line, "until", room);
	bool all = true;
	for (int kind = 0; kind < SUSPEND_KIND_COUNT; kind++) {
		const char *name =
			fields_get(line, suspend_kind_name((enum suspend_kind)kind), room);
		if (name)
			all &= suspend_recall(db, name, (enum suspend_kind)kind, until_ms);
	}
	return all;
}

void destdb_read(struct destdb *db, const char *text)
{
	struct buf room = {0};
	bool current = true; /* all of it is on disk */
	for (char *one; (one = words_line(&text)); free(one)) {
		if (strncmp(one, "host\t", 5) == 0)
			read_host(db, one, &room);
		else if (strncmp(one, "plain\t", 6) == 0)
			read_plain(db, one, &room);
		else if (strncmp(one, "site\t", 5) == 0 || strncmp(one, "provider\t", 9) == 0)
			read_site(db, one, &room);
		else if (strncmp(one, "suspended\t", 10) == 0)
			current &= read_suspended(db, one, &room);
	}
	buf_fini(&room);
	db->learnt = !current;
}
