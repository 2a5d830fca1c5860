/* SPDX-License-Identifier: ISC */
#include "base/fact.h"

#include "base/mem.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {
#define X(which, name) name,
	FACT_PARTS(X)
#undef X
};

struct fact *fact_new(enum fact_note type, const char *key)
{
	assert(type == FACT_SEEN || type == FACT_HEARD);
	struct fact *f = mailbox_note(sizeof *f, type);
	f->key = mem_strdup(key);
	return f;
}

static void fini_part(struct fact_part *p)
{
	free(p->node);
	free(p->text);
	*p = (struct fact_part){0};
}

void fact_free(struct fact **fp)
{
	struct fact *f = mem_take(fp);
	if (!f)
		return;
	for (int i = 0; i < FACT_PART_COUNT; i++)
		fini_part(&f->part[i]);
	free(f->key);
	free(f);
}

static bool is_control(char c)
{
	return (unsigned char)c < ' ' || c == 0x7f;
}

void fact_set(struct fact *f, enum fact_which which, int64_t stamp, const char *node,
	      const char *text)
{
	assert(which < FACT_PART_COUNT);
	struct fact_part *p = &f->part[which];
	fini_part(p);
	if (strlen(text) > FACT_TEXT_MAX)
		return;
	*p = (struct fact_part){stamp, mem_strdup(node), mem_strdup(text)};
	for (char *c = p->text; *c; c++)
		if (*c != '\t' && is_control(*c))
			*c = ' ';
}

bool fact_word_good(const char *word, size_t most)
{
	size_t len = strlen(word);
	for (const char *c = word; *c; c++)
		if (is_control(*c))
			return false;
	return len > 0 && len <= most;
}

int64_t fact_stamp(int64_t known, int64_t now_ms)
{
	return now_ms > known || known > now_ms + FACT_AHEAD_MS ? now_ms : known + 1;
}

static bool is_newer(const struct fact_part *a, const struct fact_part *b)
{
	assert(!a->text == !a->node && !b->text == !b->node);
	if (!a->text || !b->text || a->stamp != b->stamp)
		return a->text && (!b->text || a->stamp > b->stamp);
	return strcmp(a->node, b->node) > 0;
}

unsigned fact_merge(struct fact *known, const struct fact *heard)
{
	unsigned changed = 0;
	assert(known != heard);
	for (unsigned i = 0; i < FACT_PART_COUNT; i++) {
		const struct fact_part *p = &heard->part[i];
		if (!is_newer(p, &known->part[i]))
			continue;
		fact_set(known, (enum fact_which)i, p->stamp, p->node, p->text);
		changed |= 1U << i;
	}
	return changed;
}

struct fact *fact_copy(const struct fact *f, unsigned parts)
{
	struct fact *copy = fact_new(FACT_SEEN, f->key);
	copy->doubts = f->doubts;
	for (unsigned i = 0; i < FACT_PART_COUNT; i++)
		if (parts & 1U << i && f->part[i].text)
			fact_set(copy, (enum fact_which)i, f->part[i].stamp, f->part[i].node,
				 f->part[i].text);
	return copy;
}

const char *fact_part_name(enum fact_which which)
{
	assert(which < FACT_PART_COUNT);
	return names[which];
}

static bool parse_value(struct fact *f, enum fact_which which, const char *value, int64_t now_ms)
{
	char *end, node[FACT_NODE_MAX + 1];
	int64_t stamp = strtoll(value, &end, 10);
	size_t len = *end == '\t' ? strcspn(end + 1, "\t") : 0;
	if (stamp <= 0 || stamp > now_ms + FACT_AHEAD_MS || len == 0 || len > FACT_NODE_MAX ||
	    end[1 + len] != '\t')
		return false;
	memcpy(node, end + 1, len);
	node[len] = '\0';
	if (!fact_word_good(node, FACT_NODE_MAX))
		return false;
	fact_set(f, which, stamp, node, end + 1 + len + 1);
	return f->part[which].text != NULL;
}

bool fact_parse_part(struct fact *f, const char *name, const char *value, int64_t now_ms)
{
	for (unsigned i = 0; i < FACT_PART_COUNT; i++)
		if (strcmp(name, names[i]) == 0)
			return parse_value(f, (enum fact_which)i, value, now_ms);
	return false;
}

struct fact_probe *fact_probe_new(const char *key, struct loop *reply_to)
{
	struct fact_probe *p = mailbox_note(sizeof *p, FACT_PROBE);
	p->key = mem_strdup(key);
	p->reply_to = reply_to;
	return p;
}

void fact_probe_free(struct fact_probe **pp)
{
	struct fact_probe *p = mem_take(pp);
	if (!p)
		return;
	free(p->key);
	free(p);
}
