/* SPDX-License-Identifier: ISC */
#include "cmd/logs/trace_tell.h"

#include "base/mem.h"
#include "cmd/logs/trace_words.h"
#include "cmd/text/json_put.h"
#include "cmd/text/moment.h"

#include <stdlib.h>
#include <string.h>

enum { SIZE_DIGITS = 18 };

/* Lines of a message and of its session, as they came. */
struct told {
	int n;
	const struct trace_line **of;
};

static bool read_again(const struct trace_line *t, struct log_line *l)
{
	return log_line_read(l, t->text, t->len, t->wall_ms);
}

static void told_add(struct told *to, const struct trace_lines *from, int64_t until_ms)
{
	to->of = mem_realloc(to->of, (size_t)(to->n + from->n + 1) * sizeof(struct trace_line *));
	for (int i = 0; i < from->n; i++)
		if (from->of[i].wall_ms <= until_ms)
			to->of[to->n++] = &from->of[i];
}

/* By insertion: they are in order but for the session's. What came first stays first. */
static void told_sort(struct told *t)
{
	for (int i = 1; i < t->n; i++) {
		const struct trace_line *line = t->of[i];
		int at = i;
		for (; at > 0 && t->of[at - 1]->wall_ms > line->wall_ms; at--)
			t->of[at] = t->of[at - 1];
		t->of[at] = line;
	}
}

/* Of its session a message is concerned by what came before it. */
static struct told told_of(const struct trace_item *m, const struct trace_item *session)
{
	struct told t = {0};
	if (session && m->lines.n > 0)
		told_add(&t, &session->lines, m->lines.of[0].wall_ms);
	told_add(&t, &m->lines, INT64_MAX);
	told_sort(&t);
	return t;
}

/* The value of a key in the line in which the message itself was queued. */
static bool put_queued(struct buf *to, const struct trace_item *m, const char *key)
{
	struct log_line l;
	for (int i = 0; i < m->lines.n; i++) {
		uint64_t id;
		char text[IDENT_TEXT] = "";
		const struct log_field *f, *of;
		if (!read_again(&m->lines.of[i], &l) || !log_line_is(&l, "queued") ||
		    !(f = log_line_find(&l, key)) || !(of = log_line_find(&l, "id")))
			continue;
		memcpy(text, of->text, of->len < sizeof text ? of->len : sizeof text - 1);
		if (!ident_parse(text, &id) || id != m->number)
			continue;
		trace_words_value(f, to);
		return true;
	}
	return false;
}

static void put_head(struct buf *to, const struct trace_item *m)
{
	char id[IDENT_TEXT];
	struct buf value = {0};
	buf_puts(to, ident_text(m->number, id));
	if (put_queued(&value, m, "from"))
		buf_printf(to, "  from <%s>", buf_cstr(&value));
	buf_clear(&value);
	if (put_queued(&value, m, "message_id"))
		buf_printf(to, "  message-id %s", buf_cstr(&value));
	buf_puts(to, "\n");
	buf_fini(&value);
}

static void put_line(struct buf *to, const struct trace_line *line)
{
	struct log_line l;
	struct buf words = {0};
	if (read_again(line, &l) && trace_words(&l, &words)) {
		buf_puts(to, "  ");
		moment_put(to, l.wall_ms, false);
		buf_printf(to, "  %s\n", buf_cstr(&words));
	}
	buf_fini(&words);
}

static void put_now(struct buf *to, const char *now)
{
	if (!now)
		buf_puts(to, "  now: not in the queue\n");
	else if (strcmp(now, "?") == 0)
		buf_puts(to, "  now: the queue cannot be read\n");
	else
		buf_printf(to, "  now: in the queue, %s\n", now);
}

static void put_event_json(struct buf *to, const struct trace_line *line)
{
	struct log_line l;
	struct buf text = {0};
	if (!read_again(line, &l))
		return;
	buf_puts(to, "{\"time\":\"");
	log_put_time(to, l.wall_ms);
	buf_printf(to, "\",\"event\":\"%.*s\",", (int)l.event_len, l.event);
	for (int i = 0; i < l.n; i++) {
		char *key = mem_strndup(l.field[i].key, l.field[i].key_len);
		buf_clear(&text);
		log_field_put(&l.field[i], &text);
		json_put_text(to, key, buf_cstr(&text));
		free(key);
	}
	json_put_end(to, '}');
	buf_fini(&text);
}

static void put_events_json(struct buf *to, const struct told *t, const char *now)
{
	buf_puts(to, "\"events\":[");
	for (int i = 0; i < t->n; i++)
		put_event_json(to, t->of[i]);
	json_put_end(to, ']');
	buf_printf(to, "\"queue\":%s}\n",
		   now ? strcmp(now, "?") == 0 ? "\"unknown\"" : now : "null");
}

/* A number, as the queue has it; of a log that is damaged there it is not known. */
static void put_size_json(struct buf *to, const char *text)
{
	size_t len = strlen(text);
	bool number = len > 0 && len <= SIZE_DIGITS && strspn(text, "0123456789") == len;
	if (number)
		json_put_number(to, "size", strtoll(text, NULL, 10));
	else
		json_put_text(to, "size", NULL);
}

static void put_json(struct buf *to, const struct trace_item *m, const struct told *t,
		     const char *now)
{
	static const char *const keys[] = {"from", "message_id", "size", "client", "user", "flow"};
	char id[IDENT_TEXT];
	struct buf value = {0};
	buf_puts(to, "{");
	json_put_text(to, "id", ident_text(m->number, id));
	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
		buf_clear(&value);
		bool has = put_queued(&value, m, keys[i]);
		if (strcmp(keys[i], "size") == 0)
			put_size_json(to, has ? buf_cstr(&value) : "");
		else
			json_put_text(to, keys[i], has ? buf_cstr(&value) : NULL);
	}
	put_events_json(to, t, now);
	buf_fini(&value);
}

void trace_tell(struct buf *to, const struct trace_item *m, const struct trace_item *session,
		const char *now, bool json)
{
	struct told t = told_of(m, session);
	if (json) {
		put_json(to, m, &t, now);
	} else {
		put_head(to, m);
		for (int i = 0; i < t.n; i++)
			put_line(to, t.of[i]);
		if (t.n == 0)
			buf_puts(to, "  the log has nothing on it in this time\n");
		put_now(to, now);
	}
	free(t.of);
}

void trace_tell_loose(struct buf *to, const struct trace_lines *lines, bool json)
{
	struct told t = {0};
	if (lines->n == 0)
		return;
	told_add(&t, lines, INT64_MAX);
	buf_puts(to, json ? "{\"id\":null," : "no message came of these:\n");
	if (json)
		put_events_json(to, &t, NULL);
	for (int i = 0; !json && i < t.n; i++)
		put_line(to, t.of[i]);
	free(t.of);
}
