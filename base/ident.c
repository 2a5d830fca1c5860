/* SPDX-License-Identifier: ISC */
#include "base/ident.h"

#include "base/clock.h"

#include <assert.h>
#include <ctype.h>
#include <stdatomic.h>
#include <string.h>

static const char digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
static _Atomic uint64_t last;
static atomic_uint node;

void ident_set_node(unsigned number)
{
	assert(number < IDENT_NODES);
	atomic_store(&node, number);
}

/* The least id of this node that is above another one. */
static uint64_t least_above(uint64_t id, unsigned number)
{
	uint64_t mine = id - id % IDENT_NODES + number;
	return mine > id ? mine : mine + IDENT_NODES;
}

uint64_t ident_new(void)
{
	uint64_t before = atomic_load(&last);
	unsigned number = atomic_load(&node);
	uint64_t id;
	do {
		id = ((uint64_t)clock_wall_us() << IDENT_TIME_SHIFT) + number;
		if (id <= before)
			id = least_above(before, number);
	} while (!atomic_compare_exchange_weak(&last, &before, id));
	assert(id % IDENT_NODES == number);
	return id;
}

void ident_floor(uint64_t id)
{
	uint64_t before = atomic_load(&last);
	while (before < id && !atomic_compare_exchange_weak(&last, &before, id))
		;
}

const char *ident_text(uint64_t id, char text[IDENT_TEXT])
{
	for (int i = 12; i >= 0; i--, id >>= 5)
		text[i] = digits[id & 31];
	text[13] = '\0';
	return text;
}

bool ident_parse(const char *text, uint64_t *id)
{
	uint64_t value = 0;
	if (strlen(text) != IDENT_TEXT - 1)
		return false;
	for (int i = 0; i < IDENT_TEXT - 1; i++) {
		const char *d = strchr(digits, toupper((unsigned char)text[i]));
		if (!d || (i == 0 && d - digits > 15))
			return false;
		value = value << 5 | (uint64_t)(d - digits);
	}
	*id = value;
	return true;
}

int64_t ident_time_ms(uint64_t id)
{
	return (int64_t)(id >> IDENT_TIME_SHIFT) / 1000;
}
