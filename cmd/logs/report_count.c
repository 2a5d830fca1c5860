/* SPDX-License-Identifier: ISC */
#include "cmd/logs/report_count.h"

#include "base/mem.h"
#include "base/reason.h"
#include "cmd/logs/trace_words.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static struct report_row *row_get(struct report_count *r, enum report_table table, const char *name)
{
	struct report_row *row;
	HASH_FIND_STR(r->table[table], name, row);
	if (row)
		return row;
	row = mem_zalloc(sizeof *row);
	row->name = mem_strdup(name);
	HASH_ADD_KEYPTR(hh, r->table[table], row->name, strlen(row->name), row);
	return row;
}

/* The value of a key, or "". */
static const char *value_of(struct report_count *r, const struct log_line *l, const char *key)
{
	const struct log_field *f = log_line_find(l, key);
	buf_clear(&r->value);
	if (f)
		trace_words_value(f, &r->value);
	return buf_cstr(&r->value);
}

/* Names that differ in case only are one. */
static const char *lower_name(struct report_count *r, const char *text)
{
	buf_clear(&r->name);
	for (; *text; text++)
		buf_printf(&r->name, "%c", tolower((unsigned char)*text));
	return buf_cstr(&r->name);
}

static void replace_text(char **to, const char *text)
{
	free(*to);
	*to = mem_strdup(text);
}

/* The form postfix has three lines of a message, one behind the other: the first says where it came
 * from, the last how long it is. */
static void begin_queued(struct report_count *r, const struct log_line *l)
{
	static const char *const own[] = {"report_of", "archive_of", "refilter_of"};
	const char *id = value_of(r, l, "id");
	if (r->queued && strcmp(r->queued, id) == 0)
		return;
	replace_text(&r->queued, id);
	r->made = strcmp(value_of(r, l, "via"), "tls_report") == 0;
	for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
		r->made = r->made || log_line_find(l, own[i]);
	r->total[r->made ? REPORT_MADE : REPORT_RECEIVED]++;
	free(r->login);
	r->login = log_line_find(l, "user") ? mem_strdup(value_of(r, l, "user")) : NULL;
}

static void add_message(struct report_row *row, int64_t bytes)
{
	row->n[0]++;
	row->n[1] += bytes;
}

static void count_queued(struct report_count *r, const struct log_line *l)
{
	begin_queued(r, l);
	if (r->made || !log_line_find(l, "size"))
		return;
	int64_t bytes = strtoll(value_of(r, l, "size"), NULL, 10);
	const char *from = lower_name(r, value_of(r, l, "from"));
	r->total[REPORT_BYTES] += bytes;
	add_message(row_get(r, REPORT_OF_SENDERS, *from ? from : "<>"), bytes);
	if (r->login)
		add_message(row_get(r, REPORT_OF_LOGINS, r->login), bytes);
}

/* Its reply as a verdict, whose reason is a word that is the same for all hosts. */
static void count_reason(struct report_count *r, const struct log_line *l, enum report_table table)
{
	char *dsn = mem_strndup(value_of(r, l, "dsn"), 11);
	char *relay = mem_strdup(value_of(r, l, "relay"));
	const char *reply = value_of(r, l, "reply");
	bool coded = isdigit((unsigned char)reply[0]) && strspn(reply, "0123456789") == 3;
	struct verdict *v = verdict_new(
		table == REPORT_OF_BOUNCES ? VERDICT_FAILED : VERDICT_DEFERRED,
		coded ? atoi(reply) : 0, *dsn ? dsn : NULL, strcmp(relay, "none") == 0 ? "" : relay,
		coded && reply[3] ? reply + 4 : reply);
	struct report_row *row = row_get(r, table, reason_word(reason_of(v)));
	if (!row->example)
		row->example = mem_strdup(reply);
	row->n[0]++;
	verdict_unref(v);
	free(relay);
	free(dsn);
}

static void count_delivery(struct report_count *r, const struct log_line *l,
			   enum report_total total, int column)
{
	const char *to = lower_name(r, value_of(r, l, "to")), *at = strrchr(to, '@');
	r->total[total]++;
	if (column >= 0)
		row_get(r, REPORT_OF_DESTINATIONS, at ? at + 1 : to)->n[column]++;
}

static void count_sent(struct report_count *r, const struct log_line *l)
{
	count_delivery(r, l, REPORT_SENT, 0);
}

static void count_deferred(struct report_count *r, const struct log_line *l)
{
	count_delivery(r, l, REPORT_DEFERRED, 1);
	count_reason(r, l, REPORT_OF_DEFERRALS);
}

static void count_bounced(struct report_count *r, const struct log_line *l)
{
	count_delivery(r, l, REPORT_BOUNCED, 2);
	count_reason(r, l, REPORT_OF_BOUNCES);
}

static void count_in_doubt(struct report_count *r, const struct log_line *l)
{
	count_delivery(r, l, REPORT_IN_DOUBT, -1);
}

/* A row that is named by the values of some keys. */
static void count_by(struct report_count *r, const struct log_line *l, enum report_table table,
		     const char *const *keys)
{
	buf_clear(&r->name);
	for (; *keys; keys++) {
		const char *text = value_of(r, l, *keys);
		buf_printf(&r->name, "%s%s", *text && buf_len(&r->name) > 0 ? " " : "", text);
	}
	row_get(r, table, buf_cstr(&r->name))->n[0]++;
}

static void count_reject(struct report_count *r, const struct log_line *l)
{
	r->total[REPORT_REJECTED]++;
	count_by(r, l, REPORT_OF_REFUSALS,
		 (const char *const[]){"stage", "code", "dsn", "reason", NULL});
}

static void count_auth(struct report_count *r, const struct log_line *l)
{
	if (strcmp(value_of(r, l, "result"), "ok") == 0)
		return;
	r->total[REPORT_LOGINS_FAILED]++;
	count_by(r, l, REPORT_OF_GUESSES, (const char *const[]){"login", "result", NULL});
}

static void count_filter(struct report_count *r, const struct log_line *l)
{
	count_by(r, l, REPORT_OF_FILTERS, (const char *const[]){"milter", "action", NULL});
}

static void count_limit(struct report_count *r, const struct log_line *l)
{
	count_by(r, l, REPORT_OF_LIMITS,
		 (const char *const[]){"login", "client", "sender", "limit", "action", NULL});
}

void report_count_line(void *report, const struct log_line *l, const char *text, size_t len)
{
	static const struct {
		const char *event;
		void (*count)(struct report_count *, const struct log_line *);
	} events[] = {
		{"queued", count_queued},     {"sent", count_sent},
		{"deferred", count_deferred}, {"bounced", count_bounced},
		{"in_doubt", count_in_doubt}, {"reject", count_reject},
		{"auth", count_auth},	      {"filter", count_filter},
		{"limit", count_limit},
	};
	(void)text;
	(void)len;
	for (size_t i = 0; i < sizeof events / sizeof events[0]; i++) {
		if (log_line_is(l, events[i].event)) {
			events[i].count(report, l);
			return;
		}
	}
}

static int by_size(const struct report_row *a, const struct report_row *b)
{
	for (int i = 0; i < REPORT_COLUMNS; i++)
		if (a->n[i] != b->n[i])
			return a->n[i] > b->n[i] ? -1 : 1;
	return strcmp(a->name, b->name);
}

void report_count_sort(struct report_count *r)
{
	for (int i = 0; i < REPORT_TABLE_COUNT; i++)
		HASH_SORT(r->table[i], by_size);
}

void report_count_fini(struct report_count *r)
{
	for (int i = 0; i < REPORT_TABLE_COUNT; i++) {
		hash_each (struct report_row, row, r->table[i]) {
			HASH_DEL(r->table[i], row);
			free(row->name);
			free(row->example);
			free(row);
		}
	}
	buf_fini(&r->name);
	buf_fini(&r->value);
	free(r->queued);
	free(r->login);
}
