/* SPDX-License-Identifier: ISC */
/* Whatever bytes a segment or a payload holds: read to the end, no crash, nothing wrong accepted.
 *
 * An input that begins with the head of a segment is one; else it is a payload, and the pieces of
 * which build() makes a segment. */
#include "tests/fuzz/fuzz.h"

#include "base/crc32c.h"
#include "base/envelope.h"
#include "spool/payload.h"
#include "spool/scan.h"

static void payloads(const uint8_t *data, size_t len)
{
	struct envelope_head h;
	uint64_t seq, offset;
	payload_get_envelope_head(data, len, &h);
	uint32_t generation;
	payload_get_start(data, len, &generation);
	payload_get_start_1(data, len, &seq, &offset);
	struct envelope *e = payload_get_envelope(1, data, len);
	if (e) {
		/* What is accepted can be written and read again. */
		struct buf b;
		buf_init(&b);
		payload_put_envelope(&b, e, &h.content, h.generation);
		struct envelope *again = payload_get_envelope(1, buf_data(&b), buf_len(&b));
		assert(again && again->nrcpt == e->nrcpt);
		envelope_free(&again);
		buf_fini(&b);
	}
	envelope_free(&e);
	struct spool_delivered *d = payload_get_delivery(1, data, len, &generation);
	if (d)
		delivered_free(d);
}

/* Frame each piece of the input in turn as it is, or as a right record, by its first byte. */
static size_t build(uint8_t *to, size_t room, uint32_t seed, const uint8_t *data, size_t len)
{
	size_t at = SEGMENT_BEGIN;
	while (len > 2) {
		size_t n = data[1] < len - 2 ? data[1] : len - 2;
		if (at + record_size((uint32_t)n) > room)
			break;
		struct record r = {.type = data[0] & 7,
				   .flags = data[0] >> 7,
				   .length = (uint32_t)n,
				   .id = data[0] >> 3 & 3,
				   .crc = crc32c(0, data + 2, n)};
		if (data[0] & 64)
			record_put(to + at, seed, &r);
		memcpy(to + at + (data[0] & 64 ? RECORD_HEAD : 0), data + 2, n);
		at += record_size((uint32_t)n);
		data += 2 + n;
		len -= 2 + n;
	}
	return at;
}

/* Whatever lies there, it is read to its end. */
static void read_all(const uint8_t *bytes, size_t size, uint32_t seed)
{
	int fd = memfd_create("segment", 0);
	if (fd < 0)
		return;
	struct scan scan;
	scan_init(&scan, fd, seed, write(fd, bytes, size) == (ssize_t)size ? size : SEGMENT_BEGIN);
	enum scan_result result;
	uint64_t before = SEGMENT_BEGIN;
	while ((result = scan_next(&scan)) == SCAN_RECORD || result == SCAN_DAMAGE) {
		assert(scan.from >= before && scan.next > scan.from);
		before = scan.next;
		if (result == SCAN_RECORD)
			payloads(scan.payload, scan.record.length);
	}
	scan_fini(&scan);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static uint8_t bytes[SEGMENT_BEGIN + (64 << 10)];
	struct segment_head head;
	if (len >= SEGMENT_BEGIN && segment_head_get(data, &head)) {
		read_all(data, len, segment_head_seed(&head));
		return 0;
	}
	payloads(data, len);
	memset(bytes, 0, sizeof bytes);
	read_all(bytes, build(bytes, sizeof bytes, 7, data, len), 7);
	return 0;
}
