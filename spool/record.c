/* SPDX-License-Identifier: ISC */
#include "spool/record.h"

#include "base/crc32c.h"
#include "spool/bytes.h"

#include <assert.h>
#include <string.h>

static const uint8_t record_magic[2] = {'s', 'R'};
static const uint8_t segment_magic[8] = {'s', 'l', 'u', 'i', 'c', 'e', 'S', '\n'};

static uint32_t head_crc(const uint8_t head[RECORD_HEAD], uint32_t seed)
{
	uint8_t copy[RECORD_HEAD - 4];
	memcpy(copy, head, sizeof copy);
	copy[RECORD_FLAGS_AT] = 0;
	return crc32c(seed, copy, sizeof copy);
}

void record_put(uint8_t head[RECORD_HEAD], uint32_t seed, const struct record *r)
{
	assert(r->length <= RECORD_PAYLOAD_MAX);
	memcpy(head, record_magic, 2);
	head[2] = r->type;
	head[RECORD_FLAGS_AT] = r->flags;
	put_le(head + 4, r->length, 4);
	put_le(head + 8, r->id, 8);
	put_le(head + 16, r->crc, 4);
	put_le(head + 20, head_crc(head, seed), 4);
}

bool record_get(const uint8_t head[RECORD_HEAD], uint32_t seed, struct record *r)
{
	if (memcmp(head, record_magic, 2) != 0 || get_le(head + 20, 4) != head_crc(head, seed))
		return false;
	r->type = head[2];
	r->flags = head[RECORD_FLAGS_AT];
	r->length = (uint32_t)get_le(head + 4, 4);
	r->id = get_le(head + 8, 8);
	r->crc = (uint32_t)get_le(head + 16, 4);
	return r->length <= RECORD_PAYLOAD_MAX;
}

/* Version 1 had no size, and ended with its CRC there. */
static uint32_t crc_at(uint32_t version)
{
	return version == 1 ? 44 : SEGMENT_HEAD - 4;
}

void segment_head_put(uint8_t head[SEGMENT_HEAD], const struct segment_head *h)
{
	memset(head, 0, SEGMENT_HEAD);
	memcpy(head, segment_magic, 8);
	put_le(head + 8, h->version, 4);
	put_le(head + 12, h->lane, 4);
	put_le(head + 16, h->seq, 8);
	put_le(head + 24, h->created, 8);
	put_le(head + 32, h->salt, 8);
	put_le(head + 40, h->first, 4);
	if (h->version > 1)
		put_le(head + 44, h->reused, 4);
	if (h->version > 1)
		put_le(head + 48, h->size, 8);
	uint32_t at = crc_at(h->version);
	put_le(head + at, crc32c(0, head, at), 4);
}

bool segment_head_get(const uint8_t head[SEGMENT_HEAD], struct segment_head *h)
{
	uint32_t at = crc_at((uint32_t)get_le(head + 8, 4));
	if (memcmp(head, segment_magic, 8) != 0 || get_le(head + at, 4) != crc32c(0, head, at))
		return false;
	h->version = (uint32_t)get_le(head + 8, 4);
	h->lane = (uint32_t)get_le(head + 12, 4);
	h->seq = get_le(head + 16, 8);
	h->created = get_le(head + 24, 8);
	h->salt = get_le(head + 32, 8);
	h->first = (uint32_t)get_le(head + 40, 4);
	h->reused = h->version > 1 ? (uint32_t)get_le(head + 44, 4) : 0;
	h->size = h->version > 1 ? get_le(head + 48, 8) : 0;
	return h->version >= SEGMENT_VERSION_OLDEST && h->version <= SEGMENT_VERSION;
}

uint32_t segment_head_seed(const struct segment_head *h)
{
	uint8_t head[SEGMENT_HEAD];
	segment_head_put(head, h);
	return (uint32_t)get_le(head + crc_at(h->version), 4);
}
