/* SPDX-License-Identifier: ISC */
#include "base/log_record.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { ALIGNED = 8, NOTE_MAX = 40 };

/* The pairs follow, and behind them their values, each with its NUL. */
struct packed_pair {
	const char *key;
	uint32_t len;
	bool number;
};

struct packed {
	const char *event;
	int64_t wall_ms;
	uint32_t size; /* bytes of it all */
	uint16_t npair;
	uint16_t level;
	struct packed_pair pair[];
};

/* Whoever chooses a value may choose a long one: at each line a megabyte of it would soon be a full
 * disk. */
static bool is_too_long(const struct log_pair *p)
{
	return p->len > LOG_VALUE_MAX;
}

size_t log_record_size(const struct log_record *r)
{
	size_t size = sizeof(struct packed) + (size_t)r->npair * sizeof(struct packed_pair);
	for (int i = 0; i < r->npair; i++)
		size += is_too_long(&r->pair[i]) ? LOG_VALUE_MAX + NOTE_MAX : r->pair[i].len + 1;
	return (size + ALIGNED - 1) / ALIGNED * ALIGNED;
}

/* Returns how long the value is now. */
static size_t pack_beginning(const struct log_pair *p, char *to)
{
	size_t n = LOG_VALUE_MAX;
	while (n > LOG_VALUE_MAX - 4 && ((unsigned char)p->value[n] & 0xc0) == 0x80)
		n--; /* not in the middle of a character */
	memcpy(to, p->value, n);
	return n + (size_t)snprintf(to + n, NOTE_MAX, "...(cut, %zu bytes)", p->len);
}

static size_t pack_value(const struct log_pair *p, char *to)
{
	if (is_too_long(p))
		return pack_beginning(p, to);
	memcpy(to, p->value, p->len);
	to[p->len] = '\0';
	return p->len;
}

void log_record_pack(const struct log_record *r, size_t size, void *to)
{
	struct packed *packed = to;
	assert(r->npair <= LOG_PAIRS_MAX);
	assert((uintptr_t)to % ALIGNED == 0 && size % ALIGNED == 0 && size <= UINT32_MAX);
	*packed = (struct packed){.event = r->event,
				  .wall_ms = r->wall_ms,
				  .size = (uint32_t)size,
				  .npair = (uint16_t)r->npair,
				  .level = (uint16_t)r->level};
	char *at = (char *)&packed->pair[r->npair];
	for (int i = 0; i < r->npair; i++) {
		const struct log_pair *p = &r->pair[i];
		size_t len = pack_value(p, at);
		packed->pair[i] = (struct packed_pair){p->key, (uint32_t)len, p->number};
		at += len + 1;
	}
	assert(at <= (char *)to + packed->size);
}

const void *log_record_unpack(struct log_record *r, const void *from)
{
	const struct packed *packed = from;
	assert((uintptr_t)from % ALIGNED == 0 && packed->npair <= LOG_PAIRS_MAX);
	r->level = (enum log_level)packed->level;
	r->event = packed->event;
	r->wall_ms = packed->wall_ms;
	r->npair = packed->npair;
	const char *at = (const char *)&packed->pair[r->npair];
	for (int i = 0; i < r->npair; i++) {
		const struct packed_pair *p = &packed->pair[i];
		r->pair[i] = (struct log_pair){p->key, at, p->len, p->number};
		at += p->len + 1;
	}
	return (const char *)from + packed->size;
}
