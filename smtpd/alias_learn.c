/* SPDX-License-Identifier: ISC */
#include "smtpd/alias_learn.h"

#include "base/alias_value.h"
#include "base/clock.h"
#include "base/conf_value.h"
#include "base/log.h"
#include "base/mailaddr.h"
#include "base/mem.h"
#include "base/tables.h"
#include "smtpd/alias.h"
#include "smtpd/response.h"
#include "smtpd/socketmap.h"
#include "stages/budget.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void log_failure(const struct alias_learning *l, const char *reason)
{
	log_event(LOG_LEVEL_WARNING, "lookup", "session",
		  l->by.session ? log_id(l->by.session) : NULL, "id",
		  l->by.id ? log_id(l->by.id) : NULL, "table", tables_setting(TABLE_ALIASES), "key",
		  alias_heard_wanted(&l->heard), "reason", reason, NULL);
}

static const char *find_bad(const struct conf_list *members)
{
	struct mailaddr a;
	for (int i = 0; i < members->n; i++) {
		const char *one = members->item[i];
		if (mailaddr_mailbox(one, strlen(one), true, &a) != MAILADDR_OK || !a.text[a.at])
			return one;
	}
	return NULL;
}

/* Rows of files were looked at when they were read; what a server says was not. */
static bool is_alias(const struct alias_learning *l, const char *value)
{
	struct conf_list members = {0};
	struct buf why = {0};
	const char *bad = alias_value_parse(value, alias_heard_wanted(&l->heard), &members, &why);
	if (!bad && (bad = find_bad(&members)))
		buf_printf(&why, "\"%s\" is not an address", bad);
	if (bad)
		log_failure(l, log_text("that is no alias: %s", buf_cstr(&why)));
	conf_list_free(&members);
	buf_fini(&why);
	return !bad;
}

static void put_answer(struct alias_learning *l, const char *value)
{
	assert(alias_heard_wanted(&l->heard));
	alias_heard_put(&l->heard, value);
	budget_charge(&l->charged, l->heard.bytes);
	l->table = 0;
}

/* Of who waits for a reply. */
static const char *why_enough(const struct alias_learning *l)
{
	if (l->by.patient)
		return NULL;
	if (clock_steady_ms() - l->begun_ms > ALIAS_LEARN_MS)
		return "all its questions together take too long";
	return budget_spent(l->by.conf) ? "sessions have all the memory that they may have" : NULL;
}

static void take_answer(void *owner, const struct socketmap_answer *);

/* Of one table, the next for what is wanted. */
static enum alias_learnt ask_table(struct alias_learning *l)
{
	struct table_origin origin;
	const struct socketmap_name *server;
	const char *key = alias_heard_wanted(&l->heard);
	char *value =
		tables_get_at(l->by.conf->tables, TABLE_ALIASES, l->table, key, &server, &origin);
	if (server && !socketmap_known(l->by.maps, server, key, &value)) {
		assert(!l->asked);
		l->asked = socketmap_ask_for(l->by.maps, server, key, take_answer, l);
		return ALIAS_WAITS;
	}
	bool good = !value || !server || is_alias(l, value);
	if (good && value)
		put_answer(l, value);
	else if (good)
		l->table++;
	free(value);
	return good ? ALIAS_KNOWN : ALIAS_FAILED;
}

/* Rows of thousands of members, each of which has such a row: an expansion must end that, before all are asked. */
static bool much_was_said(const struct alias_learning *l)
{
	return l->heard.said - l->looked > ALIAS_BYTES_MAX;
}

static enum alias_learnt ask_wanted(struct alias_learning *l)
{
	enum alias_learnt so_far = ALIAS_KNOWN;
	const char *enough;
	int n = tables_count(l->by.conf->tables, TABLE_ALIASES);
	while (so_far == ALIAS_KNOWN && alias_heard_wanted(&l->heard) && !much_was_said(l)) {
		if (l->table == n) {
			put_answer(l, NULL);
		} else if ((enough = why_enough(l))) {
			log_failure(l, enough);
			so_far = ALIAS_FAILED;
		} else {
			so_far = ask_table(l);
		}
	}
	return so_far;
}

static enum alias_learnt go_on(struct alias_learning *l)
{
	enum alias_learnt so_far = ask_wanted(l);
	while (so_far == ALIAS_KNOWN && l->by.known && !l->by.known(l->by.owner)) {
		l->looked = l->heard.said;
		so_far = ask_wanted(l);
	}
	return so_far;
}

static void stop_asking(struct alias_learning *l)
{
	if (l->asked)
		socketmap_forget(l->by.maps, l->asked);
	l->asked = 0;
	conf_unref(l->by.conf);
	l->by = (struct alias_learner){0};
}

static void conclude_learning(struct alias_learning *l, bool failed)
{
	struct alias_learner by = l->by;
	assert(!l->asked && by.learnt);
	stop_asking(l);
	by.learnt(by.owner, failed);
}

static void take_answer(void *owner, const struct socketmap_answer *a)
{
	struct alias_learning *l = owner;
	enum alias_learnt so_far = ALIAS_KNOWN;
	assert(l->asked && l->by.conf);
	l->asked = 0;
	if (a->result == SOCKETMAP_FAILED) {
		log_failure(l, a->text);
		so_far = ALIAS_FAILED;
	} else if (a->result == SOCKETMAP_NONE) {
		l->table++;
	} else if (is_alias(l, a->text)) {
		put_answer(l, a->text);
	} else {
		so_far = ALIAS_FAILED;
	}
	if (so_far == ALIAS_KNOWN)
		so_far = go_on(l);
	if (so_far != ALIAS_WAITS)
		conclude_learning(l, so_far == ALIAS_FAILED);
}

enum alias_learnt alias_learn(struct alias_learning *l, const struct alias_learner *by)
{
	if (by->known && by->known(by->owner))
		return ALIAS_KNOWN;
	assert(!l->by.conf);
	l->by = *by;
	l->by.conf = conf_ref(by->conf);
	l->table = 0;
	l->looked = l->heard.said;
	l->begun_ms = clock_steady_ms();
	enum alias_learnt so_far = go_on(l);
	if (so_far != ALIAS_WAITS)
		stop_asking(l);
	return so_far;
}

void alias_learn_end(struct alias_learning *l)
{
	stop_asking(l);
	alias_heard_forget(&l->heard);
	budget_charge(&l->charged, 0);
}

void alias_learn_refuse(struct passage *p)
{
	const struct response_row *row = response_row(RESPONSE_LOOKUP_FAILED);
	char *reply = mem_printf("%d %s %s", row->code, row->dsn, row->text);
	passage_refuse(p, reply);
	free(reply);
}
