/* SPDX-License-Identifier: ISC */
#include "cmd/text/flow_tell.h"

#include "base/fact.h"
#include "base/mem.h"
#include "cmd/text/flow_print.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES_MAX = 1000, LAST_LINE_MAX = 100 };

#define FIGURE_MAX INT64_C(1000000000000000) /* the sums of a thousand have room */

enum joined { ADDED, EARLIEST, LATEST, SETTING };

/* X(word, member of a row, how those of several nodes become one) */
#define FIGURES_TOLD(X)                                                                            \
	X("weight", weight, SETTING)                                                               \
	X("rate", rate.events, SETTING)                                                            \
	X("rate_ms", rate.per_ms, SETTING)                                                         \
	X("messages", messages, ADDED)                                                             \
	X("sending", sending, ADDED)                                                               \
	X("sent", today.sent, ADDED)                                                               \
	X("deferred", today.deferred, ADDED)                                                       \
	X("refused", today.refused, ADDED)                                                         \
	X("hour_sent", hour.sent, ADDED)                                                           \
	X("hour_deferred", hour.deferred, ADDED)                                                   \
	X("hour_refused", hour.refused, ADDED)                                                     \
	X("yesterday_sent", yesterday.sent, ADDED)                                                 \
	X("yesterday_deferred", yesterday.deferred, ADDED)                                         \
	X("yesterday_refused", yesterday.refused, ADDED)                                           \
	X("oldest", oldest_ms, EARLIEST)                                                           \
	X("due", due_ms, EARLIEST)                                                                 \
	X("until", until_ms, LATEST)                                                               \
	X("last", last_ms, LATEST)

static void put_row(struct buf *to, const struct flow_row *row)
{
	buf_puts(to, row->name);
	if (row->suspended)
		buf_puts(to, "\tsuspended=1");
#define X(word, member, joined)                                                                    \
	if (row->member != 0)                                                                      \
		buf_printf(to, "\t" word "=%" PRId64, (int64_t)row->member);
	FIGURES_TOLD(X)
#undef X
	buf_puts(to, "\n");
}

void flow_tell(struct buf *to, struct flow_command *c, size_t most)
{
	int64_t left = 0;
	flow_print_sort(c);
	for (int i = 0; i < c->nrow; i++) {
		size_t before = buf_len(to);
		if (!left && fact_word_good(c->row[i].name, NAME_BYTES_MAX))
			put_row(to, &c->row[i]);
		if (buf_len(to) + LAST_LINE_MAX > most)
			buf_shorten(to, buf_len(to) - before);
		left += buf_len(to) == before;
	}
	buf_printf(to, "\tsending=%" PRId64 "\tleft=%" PRId64 "\n", c->sending, left);
}

static void read_field(struct flow_told *t, const char *word, int64_t value)
{
	if (strcmp(word, "suspended") == 0)
		t->row.suspended = value != 0;
	if (strcmp(word, "left") == 0)
		t->left = value;
#define X(name, member, joined)                                                                    \
	if (strcmp(word, name) == 0)                                                               \
		t->row.member = value;
	FIGURES_TOLD(X)
#undef X
}

bool flow_told_read(struct flow_told *t, char *line)
{
	*t = (struct flow_told){0};
	const char *name = strsep(&line, "\t");
	if (*name && !fact_word_good(name, NAME_BYTES_MAX))
		return false;
	for (char *word; (word = strsep(&line, "\t")) != NULL;) {
		char *equals = strchr(word, '=');
		int64_t value = equals ? strtoll(equals + 1, NULL, 10) : 0;
		if (value <= 0 || value > FIGURE_MAX)
			continue;
		*equals = '\0';
		read_field(t, word, value);
	}
	t->row.name = *name ? mem_strdup(name) : NULL;
	return true;
}

void flow_told_fini(struct flow_told *t)
{
	mem_free(&t->row.name);
}

/* A figure of 0 is not known. */
static int64_t join_values(int64_t sum, int64_t one, enum joined how)
{
	switch (how) {
	case ADDED:
		return sum + one;
	case EARLIEST:
		return sum == 0 || (one != 0 && one < sum) ? one : sum;
	case LATEST:
		return one > sum ? one : sum;
	case SETTING:
		return sum == 0 ? one : sum;
	}
	abort();
}

void flow_told_add(struct flow_row *sum, const struct flow_row *one)
{
#define X(word, member, how) sum->member = join_values(sum->member, one->member, how);
	FIGURES_TOLD(X)
#undef X
}
