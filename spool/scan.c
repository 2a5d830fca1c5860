/* SPDX-License-Identifier: ISC */
#include "spool/scan.h"

#include "base/crc32c.h"
#include "base/mem.h"
#include "spool/disk.h"
#include "spool/payload.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 1 << 20, PAGE = 4096 }; /* bytes */

void scan_init(struct scan *s, int fd, uint32_t seed, uint64_t size)
{
	*s = (struct scan){.fd = fd, .seed = seed, .size = size, .next = SEGMENT_BEGIN};
}

void scan_fini(struct scan *s)
{
	free(s->window);
}

static size_t read_pages(struct scan *s, size_t want)
{
	size_t done = 0;
	while (done < want) {
		size_t page = want - done < PAGE ? want - done : PAGE;
		ssize_t n = disk_read(s->fd, s->window + done, page, s->window_at + done);
		if (n == 0)
			break;
		if (n < 0) {
			s->unreadable = true;
			memset(s->window + done, 0, page);
			n = (ssize_t)page;
		}
		done += (size_t)n;
	}
	return done;
}

static void fill_window(struct scan *s, uint64_t at, size_t len)
{
	assert(at <= s->size);
	size_t want = len < WINDOW ? WINDOW : len;
	if (want > s->size - at)
		want = (size_t)(s->size - at);
	if (want > s->window_cap) {
		free(s->window);
		s->window = mem_alloc(want);
		s->window_cap = want;
	}
	assert(want <= s->window_cap);
	s->window_at = at;
	ssize_t n = disk_read(s->fd, s->window, want, at);
	s->window_len = n < 0 ? read_pages(s, want) : (size_t)n;
}

/* The bytes there; NULL when the file does not have so many. */
static const uint8_t *view_bytes(struct scan *s, uint64_t at, size_t len)
{
	if (at > s->size || len > s->size - at)
		return NULL;
	if (at < s->window_at || at + len > s->window_at + s->window_len)
		fill_window(s, at, len);
	if (at + len > s->window_at + s->window_len)
		return NULL;
	return s->window + (at - s->window_at);
}

/* Whether a right record lies there. *size: what its head says of it, 0 when that is wrong. */
static bool has_right_record(struct scan *s, uint64_t at, uint64_t *size)
{
	*size = 0;
	const uint8_t *head = view_bytes(s, at, RECORD_HEAD);
	if (!head || !record_get(head, s->seed, &s->record))
		return false;
	*size = record_size(s->record.length);
	const uint8_t *all = view_bytes(s, at, RECORD_HEAD + (size_t)s->record.length);
	if (!all || crc32c(0, all + RECORD_HEAD, s->record.length) != s->record.crc)
		return false;
	s->payload = all + RECORD_HEAD;
	return true;
}

static bool all_zero(struct scan *s, uint64_t at, uint64_t end)
{
	for (; at + 8 <= end; at += 8) {
		const uint8_t *p = view_bytes(s, at, 8);
		if (!p || memcmp(p, "\0\0\0\0\0\0\0", 8) != 0)
			return false;
	}
	return true;
}

/* Pass over damage: find the next right record. */
static enum scan_result skip_damage(struct scan *s, uint64_t size)
{
	/* A head that says too much is right about its record, but there is no next one. */
	uint64_t at = s->from + (size ? size : 8);
	bool begun = size != 0;
	s->damaged = begun ? s->record.id : 0;
	while (at + RECORD_HEAD <= s->size && !has_right_record(s, at, &size))
		at += 8;
	if (at + RECORD_HEAD <= s->size) {
		s->to = s->next = at;
		return SCAN_DAMAGE;
	}
	s->begun = begun;
	bool nothing = all_zero(s, s->from, s->size);
	s->to = s->next = s->size;
	return nothing ? SCAN_END : SCAN_TORN;
}

/* One that is about the segment itself. */
static bool take_segment_record(struct scan *s)
{
	uint64_t synced;
	if (s->record.type == RECORD_SYNCED &&
	    payload_get_synced(s->payload, s->record.length, &synced) && synced > s->synced)
		s->synced = synced;
	return s->record.type == RECORD_SYNCED || s->record.type == RECORD_FILLER;
}

enum scan_result scan_next(struct scan *s)
{
	uint64_t size;
	for (;;) {
		s->from = s->next;
		if (s->sealed)
			return SCAN_END;
		if (!has_right_record(s, s->from, &size))
			return skip_damage(s, size);
		s->to = s->next = s->from + size;
		s->sealed = s->record.type == RECORD_END;
		if (!s->sealed && !take_segment_record(s))
			return SCAN_RECORD;
	}
}
