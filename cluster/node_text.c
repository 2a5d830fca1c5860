/* SPDX-License-Identifier: ISC */
#include "cluster/node_text.h"

#include "base/mem.h"
#include "base/number.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {
#define X(counter, name, what) name,
	NODE_COUNTERS(X)
#undef X
};

const char *node_counter_name(enum node_counter counter)
{
	assert(counter < NODE_COUNTER_COUNT);
	return names[counter];
}

void node_text_put(struct buf *to, const struct node_text *n)
{
	buf_printf(to, "version=%s\tstate=%s", n->version, n->state);
	for (int i = 0; i < NODE_COUNTER_COUNT; i++)
		if (n->count[i] != 0)
			buf_printf(to, "\t%s=%" PRId64, names[i], n->count[i]);
}

/* Printable ASCII only: it is shown to the operator. */
static void copy_word(char to[NODE_WORD_MAX], const char *from, size_t len)
{
	size_t n = 0;
	for (size_t i = 0; i < len && n < NODE_WORD_MAX - 1; i++)
		if (from[i] > ' ' && from[i] <= '~')
			to[n++] = from[i];
	to[n] = '\0';
}

/* Whoever may write to Redis may say anything: sums of it must not overflow. */
static int64_t read_count(const char *value)
{
	return number_max(0, number_min(strtoll(value, NULL, 10), NODE_COUNT_MAX));
}

static void read_field(struct node_text *n, const char *name, size_t name_len, const char *value,
		       size_t len)
{
	if (name_len == 7 && memcmp(name, "version", 7) == 0)
		copy_word(n->version, value, len);
	if (name_len == 5 && memcmp(name, "state", 5) == 0)
		copy_word(n->state, value, len);
	for (int i = 0; i < NODE_COUNTER_COUNT; i++)
		if (strlen(names[i]) == name_len && memcmp(names[i], name, name_len) == 0)
			n->count[i] = read_count(value);
}

void node_text_read(struct node_text *n, const char *name, const char *text)
{
	*n = (struct node_text){.name = mem_strdup(name)};
	while (*text) {
		size_t len = strcspn(text, "\t");
		const char *equals = memchr(text, '=', len);
		if (equals)
			read_field(n, text, (size_t)(equals - text), equals + 1,
				   len - (size_t)(equals + 1 - text));
		text += len + (text[len] == '\t');
	}
}

void node_text_fini(struct node_text *n)
{
	mem_free(&n->name);
}

bool node_text_alive(const struct node_text *n)
{
	return strcmp(n->state, "gone") != 0;
}
