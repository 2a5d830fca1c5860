/* SPDX-License-Identifier: ISC */
#include "spool/repair.h"

#include "base/clock.h"
#include "base/ident.h"
#include "base/mem.h"
#include "spool/commit.h"
#include "spool/recover.h"
#include "spool/verify.h"
#include "spool/op.h"

#include <stdlib.h>
#include <string.h>

/* Findings of the first look, as far as they are needed again. */
struct todo {
	struct check *check;
	uint64_t *segment, *orphan; /* numbers of segments with faults; ids */
	size_t nsegment, norphan;
};

static void add_number(uint64_t **all, size_t *n, uint64_t one)
{
	*all = mem_realloc(*all, (*n + 1) * sizeof **all);
	(*all)[(*n)++] = one;
}

static void remember_finding(void *owner, const struct check_finding *f)
{
	struct todo *t = owner;
	if (f->fault == CHECK_ORPHAN)
		add_number(&t->orphan, &t->norphan, f->id);
	else if (f->seq && f->fault != CHECK_MESSAGE)
		add_number(&t->segment, &t->nsegment, f->seq);
	t->check->found(t->check->owner, f);
}

/* Files that recovery took for content of a message that is just coming in. One that the first look could not read once, and recovery could,
 * belongs to one. */
static void put_orphans_aside(struct spool *s, const struct todo *t)
{
	char name[IDENT_TEXT];
	for (size_t i = 0; i < t->norphan; i++)
		if (t->orphan[i] > s->newest && !catalog_find(&s->catalog, t->orphan[i]))
			quarantine_file(s, s->large, ident_text(t->orphan[i], name),
					"it belongs to no message");
}

/* Looked at twice: what could not be read for a moment must not cost a message that is whole. */
static const char *verify_twice(const struct spool *s, const struct stub *stub)
{
	const char *wrong = "";
	for (int i = 0; i < 2 && wrong; i++) {
		struct envelope *e;
		wrong = verify_message(s->large, stub, &e);
		envelope_free(&e);
	}
	return wrong;
}

/* Damage that a start finds out only when the message is due. */
static void put_messages_aside(struct spool *s)
{
	struct stub *stub;
	for (uint64_t id = 0; (stub = catalog_next(&s->catalog, id));) {
		const char *wrong = verify_twice(s, stub);
		id = stub->id;
		if (wrong && quarantine_message(s, stub, wrong))
			op_finish(s, stub);
	}
}

static struct segment *find_segment(const struct spool *s, uint64_t seq)
{
	for (struct list *l = s->journal.segments.next; l != &s->journal.segments; l = l->next)
		if (list_entry(l, struct segment, link)->head.seq == seq)
			return list_entry(l, struct segment, link);
	return NULL;
}

/* Records that are left in one are needed by nothing then, and it goes with the others of that kind. */
static void empty_segments(struct spool *s, const struct todo *t)
{
	for (size_t i = 0; i < t->nsegment; i++) {
		struct segment *g = find_segment(s, t->segment[i]);
		if (g && g->live > 0)
			compact_segment(s, g);
	}
}

/* A segment that a start would pass over may be the damaged one. */
static void read_all(struct spool *s)
{
	for (struct list *l = s->journal.older.next; l != &s->journal.older; l = l->next) {
		struct segment *g = list_entry(l, struct segment, link);
		g->passed_over = g->gone;
	}
}

static void remove_needless(struct spool *s)
{
	do
		journal_collect(&s->journal, s->loop->now_ms);
	while (s->journal.removing);
}

static bool mend_spool(struct conf *conf, const struct todo *t, struct buf *error)
{
	struct spool *s = spool_new(conf, NULL, error);
	if (!s)
		return false;
	s->loop->now_ms = clock_steady_ms();
	read_all(s);
	s->keeps_orphans = true; /* nothing is removed that may be of a message */
	recover_here(s);
	put_orphans_aside(s, t);
	bool ok = commit_now(s) && !s->journal.stuck;
	if (ok) {
		put_messages_aside(s);
		ok = commit_now(s);
	}
	if (ok) {
		empty_segments(s, t);
		journal_say_synced(&s->journal);
		ok = journal_sync(&s->journal);
	}
	if (ok)
		remove_needless(s);
	else
		buf_printf(error, "%s: the disk cannot be written to", conf->spool);
	spool_free(&s);
	return ok;
}

bool spool_repair(struct conf *conf, struct check *check, struct buf *error)
{
	struct todo t = {.check = check};
	struct check first = {.found = remember_finding, .owner = &t};
	bool ok = spool_check(conf, &first, error);
	check->summary = first.summary;
	if (ok && first.summary.faults > 0) {
		check->after_repair = true;
		ok = mend_spool(conf, &t, error) && spool_check(conf, check, error);
		if (ok && check->summary.faults < first.summary.faults)
			check->summary.repaired = first.summary.faults - check->summary.faults;
	}
	free(t.segment);
	free(t.orphan);
	return ok;
}
