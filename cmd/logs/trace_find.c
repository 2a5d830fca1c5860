/* SPDX-License-Identifier: ISC */
#include "cmd/logs/trace_find.h"

#include "base/mem.h"
#include "base/name_key.h"

#include <ctype.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { CONNECTED_MS = 3600 * 1000 }; /* how long before its message a session is looked for */

static void lines_add(struct trace_lines *to, const struct log_line *l, const char *text,
		      size_t len)
{
	if (to->n == to->room) {
		to->room = to->room ? 2 * to->room : 8;
		to->of = mem_realloc(to->of, (size_t)to->room * sizeof *to->of);
	}
	to->of[to->n++] = (struct trace_line){mem_strndup(text, len), len, l->wall_ms};
}

static void lines_clear(struct trace_lines *l)
{
	for (int i = 0; i < l->n; i++)
		free(l->of[i].text);
	l->n = 0;
}

static void items_free(struct trace_item **all, struct trace_item *item)
{
	HASH_DEL(*all, item);
	lines_clear(&item->lines);
	free(item->lines.of);
	free(item);
}

static struct trace_item *item_get(struct trace_item *all, uint64_t number)
{
	struct trace_item *item;
	HASH_FIND(hh, all, &number, sizeof number, item);
	return item;
}

static struct trace_item *item_add(struct trace_find *t, struct trace_item **all, uint64_t number)
{
	struct trace_item *item = item_get(*all, number);
	if (item)
		return item;
	item = mem_zalloc(sizeof *item);
	item->number = number;
	HASH_ADD(hh, *all, number, sizeof item->number, item);
	t->learnt = true;
	return item;
}

void trace_find_add(struct trace_find *t, uint64_t id)
{
	item_add(t, &t->messages, id);
}

static bool number_of(const struct log_line *l, const char *key, uint64_t *number)
{
	char text[IDENT_TEXT] = "";
	const struct log_field *f = log_line_find(l, key);
	if (!f || f->len != IDENT_TEXT - 1)
		return false;
	memcpy(text, f->text, f->len);
	return ident_parse(text, number);
}

/* As it is, in angles as Message-IDs are, or behind the type of an ORCPT. */
static bool is_value(struct trace_find *t, const struct log_field *f)
{
	buf_clear(&t->value);
	log_field_put(f, &t->value);
	char *text = buf_cstr(&t->value);
	size_t n = buf_len(&t->value);
	if (n > 2 && text[0] == '<' && text[n - 1] == '>') {
		text[n - 1] = '\0';
		text++;
	}
	const char *address = strchr(text, ';');
	return name_key_fits(t->key, text) || (address && name_key_fits(t->key, address + 1));
}

static bool is_wanted(struct trace_find *t, const struct log_line *l)
{
	static const char *const keys[] = {"from", "to", "orig_to", "message_id", "user", "login"};
	size_t least = t->plain ? strlen(t->key) : 0;
	for (int i = 0; t->key && i < l->n; i++) {
		const struct log_field *f = &l->field[i];
		if (f->len < least)
			continue;
		for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++)
			if (strlen(keys[k]) == f->key_len &&
			    memcmp(keys[k], f->key, f->key_len) == 0 && is_value(t, f))
				return true;
	}
	return false;
}

static void take_first(void *context, const struct log_line *l, const char *text, size_t len)
{
	struct trace_find *t = context;
	uint64_t id, session;
	if (!is_wanted(t, l))
		return;
	if (!number_of(l, "id", &id)) {
		lines_add(&t->loose, l, text, len);
		return;
	}
	struct trace_item *m = item_add(t, &t->messages, id);
	if (log_line_is(l, "queued") && number_of(l, "session", &session))
		m->session = session;
}

/* Such characters are the same in each form of the log, and a domain of them has no other spelling there. */
static bool is_plain(const char *key)
{
	if (strstr(key, "xn--"))
		return false;
	for (; *key; key++)
		if (!isalnum((unsigned char)*key) && !strchr("@._+=-", *key))
			return false;
	return true;
}

/* An address is found by its @, of which a line has few: most lines need not be read. */
static bool may_be_wanted(void *context, const char *text, size_t len)
{
	const struct trace_find *t = context;
	const char *at = strchr(t->key, '@'), *end = text + len;
	if (!at || !t->plain)
		return true;
	ptrdiff_t before = at - t->key, behind = (ptrdiff_t)strlen(at);
	for (const char *p = text; (p = memchr(p, '@', (size_t)(end - p))); p++)
		if (p - text >= before && end - p >= behind &&
		    strncasecmp(p - before, t->key, (size_t)(before + behind)) == 0)
			return true;
	return false;
}

/* A message that was made of one that is wanted: the line belongs to both. */
static struct trace_item *take_offspring(struct trace_find *t, const struct log_line *l,
					 const char *text, size_t len)
{
	static const char *const keys[] = {"report_of", "archive_of", "refilter_of"};
	uint64_t id, of;
	struct trace_item *m, *made;
	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
		if (!number_of(l, keys[i], &of) || !(m = item_get(t->messages, of)) ||
		    m->reported || !number_of(l, "id", &id))
			continue;
		lines_add(&m->lines, l, text, len);
		made = item_add(t, &t->messages, id);
		made->reported = true;
		return made;
	}
	return NULL;
}

static void take_known(void *context, const struct log_line *l, const char *text, size_t len)
{
	struct trace_find *t = context;
	uint64_t id, session = 0;
	bool queued = log_line_is(l, "queued"), of_session = number_of(l, "session", &session);
	if (!number_of(l, "id", &id)) {
		struct trace_item *s = of_session ? item_get(t->sessions, session) : NULL;
		if (s)
			lines_add(&s->lines, l, text, len);
		return;
	}
	struct trace_item *m = queued ? take_offspring(t, l, text, len) : NULL;
	if (!m)
		m = item_get(t->messages, id);
	if (!m)
		return;
	lines_add(&m->lines, l, text, len);
	if (of_session && queued) {
		m->session = session;
		item_add(t, &t->sessions, session);
	}
}

static int by_number(const struct trace_item *a, const struct trace_item *b)
{
	return a->number < b->number ? -1 : a->number > b->number;
}

static void keep_latest(struct trace_find *t)
{
	HASH_SORT(t->messages, by_number);
	while ((int)HASH_COUNT(t->messages) > t->most) {
		items_free(&t->messages, t->messages);
		t->dropped++;
	}
}

/* Nothing was said of a message long before its id was made. */
static struct log_span span_of(const struct trace_find *t)
{
	struct log_span span = t->span;
	if (t->messages) {
		int64_t from_ms = ident_time_ms(t->messages->number) - CONNECTED_MS;
		span.from_ms = from_ms > span.from_ms ? from_ms : span.from_ms;
	}
	return span;
}

/* Sessions that the first pass has seen as a whole spare another one. */
static void add_sessions(struct trace_find *t)
{
	for (const struct trace_item *m = t->messages; m; m = m->hh.next)
		if (m->session)
			item_add(t, &t->sessions, m->session);
}

static void clear_items(struct trace_find *t)
{
	for (struct trace_item *i = t->messages; i; i = i->hh.next)
		lines_clear(&i->lines);
	for (struct trace_item *i = t->sessions; i; i = i->hh.next)
		lines_clear(&i->lines);
}

/* A login stands in the stories of what was sent with it. */
static bool is_told(const struct trace_find *t, const struct trace_line *line)
{
	struct log_line l;
	uint64_t session;
	return log_line_read(&l, line->text, line->len, line->wall_ms) && log_line_is(&l, "auth") &&
	       number_of(&l, "session", &session) && item_get(t->sessions, session);
}

static void drop_told(struct trace_find *t)
{
	int n = 0;
	for (int i = 0; i < t->loose.n; i++) {
		if (is_told(t, &t->loose.of[i]))
			free(t->loose.of[i].text);
		else
			t->loose.of[n++] = t->loose.of[i];
	}
	t->loose.n = n;
}

bool trace_find_run(struct trace_find *t, struct log_files *files)
{
	bool good = true;
	free(t->key);
	t->key = t->wanted ? name_key(t->wanted) : NULL;
	t->plain = t->key && is_plain(t->key);
	if (t->key)
		good = log_pass(files, t->span, may_be_wanted, take_first, t);
	keep_latest(t);
	add_sessions(t);
	for (t->learnt = t->messages != NULL; t->learnt;) {
		t->learnt = false;
		clear_items(t);
		good = log_pass(files, span_of(t), NULL, take_known, t) && good;
	}
	HASH_SORT(t->messages, by_number);
	drop_told(t);
	return good;
}

const struct trace_item *trace_find_session(const struct trace_find *t, const struct trace_item *m)
{
	return m->session ? item_get(t->sessions, m->session) : NULL;
}

void trace_find_clear(struct trace_find *t)
{
	while (t->messages)
		items_free(&t->messages, t->messages);
	while (t->sessions)
		items_free(&t->sessions, t->sessions);
	lines_clear(&t->loose);
	t->dropped = 0;
}

void trace_find_fini(struct trace_find *t)
{
	trace_find_clear(t);
	free(t->loose.of);
	free(t->key);
	buf_fini(&t->value);
}
