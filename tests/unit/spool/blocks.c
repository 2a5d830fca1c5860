/* SPDX-License-Identifier: ISC */
#include "tests/unit/spool/blocks.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

struct page {
	int refs;
	uint8_t bytes[BLOCKS_PAGE];
};

static void page_unref(struct page *p)
{
	if (p && --p->refs == 0)
		free(p);
}

void blocks_fini(struct blocks *b)
{
	for (size_t i = 0; i < b->npage; i++)
		page_unref(b->page[i]);
	free(b->page);
	*b = (struct blocks){.size = 0};
}

void blocks_copy(struct blocks *to, const struct blocks *from)
{
	blocks_fini(to);
	*to = *from;
	to->page = NULL;
	if (from->npage == 0)
		return;
	to->page = mem_alloc(from->npage * sizeof(struct page *));
	for (size_t i = 0; i < from->npage; i++)
		if ((to->page[i] = from->page[i]))
			to->page[i]->refs++;
}

static struct page *page_of_ones_own(struct blocks *b, size_t i)
{
	struct page *old = b->page[i];
	if (old && old->refs == 1)
		return old;
	struct page *p = mem_zalloc(sizeof *p);
	if (old)
		memcpy(p->bytes, old->bytes, BLOCKS_PAGE);
	p->refs = 1;
	page_unref(old);
	return b->page[i] = p;
}

void blocks_resize(struct blocks *b, uint64_t size)
{
	size_t n = (size_t)((size + BLOCKS_PAGE - 1) / BLOCKS_PAGE);
	for (size_t i = n; i < b->npage; i++)
		page_unref(b->page[i]);
	if (n != b->npage)
		b->page = mem_realloc(b->page, (n ? n : 1) * sizeof(struct page *));
	for (size_t i = b->npage; i < n; i++)
		b->page[i] = NULL;
	b->npage = n;
	size_t rest = (size_t)(size % BLOCKS_PAGE);
	if (size < b->size && rest > 0 && b->page[n - 1])
		memset(page_of_ones_own(b, n - 1)->bytes + rest, 0, BLOCKS_PAGE - rest);
	b->size = size;
}

static size_t part(uint64_t at, size_t left)
{
	size_t room = BLOCKS_PAGE - (size_t)(at % BLOCKS_PAGE);
	return left < room ? left : room;
}

void blocks_write(struct blocks *b, uint64_t at, const void *from, size_t len)
{
	const uint8_t *bytes = from;
	if (at >= b->size)
		return;
	if (len > b->size - at)
		len = (size_t)(b->size - at);
	for (size_t n; len > 0; at += n, bytes += n, len -= n) {
		n = part(at, len);
		struct page *p = page_of_ones_own(b, (size_t)(at / BLOCKS_PAGE));
		memcpy(p->bytes + at % BLOCKS_PAGE, bytes, n);
	}
}

size_t blocks_read(const struct blocks *b, uint64_t at, void *to, size_t len)
{
	uint8_t *bytes = to;
	if (at >= b->size)
		return 0;
	if (len > b->size - at)
		len = (size_t)(b->size - at);
	for (size_t n, left = len; left > 0; at += n, bytes += n, left -= n) {
		n = part(at, left);
		const struct page *p = b->page[at / BLOCKS_PAGE];
		if (p)
			memcpy(bytes, p->bytes + at % BLOCKS_PAGE, n);
		else
			memset(bytes, 0, n);
	}
	return len;
}
