/* SPDX-License-Identifier: ISC */
/* The content of a message, fed whole and byte by byte: both must come to the same, and what is
 * kept of a message that is not refused must have no CR or LF that stands alone. */
#include "tests/fuzz/fuzz.h"

#include "base/buf.h"
#include "base/mem.h"
#include "smtpd/content_in.h"
#include "smtpd/header_in.h"

struct run {
	struct content_in decoder;
	struct header_in header;
	struct buf kept;
	size_t used;
};

static void keep(void *owner, const char *bytes, size_t len)
{
	buf_append(owner, bytes, len);
}

static void read_header(void *owner, const char *bytes, size_t len)
{
	header_in_feed(owner, bytes, len);
}

static char *become(void *owner, enum header_class class, const char *address, size_t len)
{
	(void)owner;
	return len % 2 ? mem_printf("%d@%.*s", class, (int)len, address) : NULL;
}

static void decode(struct run *r, uint8_t how, const char *bytes, size_t len, size_t step)
{
	memset(r, 0, sizeof *r);
	r->header.sink = keep;
	r->header.owner = &r->kept;
	r->header.become = how & 16 ? become : NULL;
	r->decoder.sink = read_header;
	r->decoder.owner = &r->header;
	r->decoder.dots = how & 1;
	r->decoder.normalise = how & 2;
	r->decoder.line_limit = how & 4 ? 40 : 0;
	r->decoder.size_limit = how & 8 ? 200 : 0;
	while (r->used < len && !content_in_ended(&r->decoder)) {
		size_t n = step < len - r->used ? step : len - r->used;
		r->used += content_in_feed(&r->decoder, bytes + r->used, n);
	}
	if (!content_in_ended(&r->decoder))
		content_in_finish(&r->decoder);
	header_in_finish(&r->header);
	header_in_fini(&r->header);
}

static void check_lines(struct run *r)
{
	const char *p = buf_cstr(&r->kept);
	size_t len = buf_len(&r->kept);
	assert(!memchr(p, '\0', len));
	for (size_t i = 0; i < len; i++) {
		assert(p[i] != '\r' || p[i + 1] == '\n');
		assert(p[i] != '\n' || (i > 0 && p[i - 1] == '\r'));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct run whole, bytes;
	if (size < 2)
		return 0;
	decode(&whole, data[0], (const char *)data + 2, size - 2, size);
	decode(&bytes, data[0], (const char *)data + 2, size - 2, data[1] ? data[1] : 1);
	assert(whole.used == bytes.used);
	assert(whole.decoder.faults == bytes.decoder.faults);
	assert(whole.decoder.size == bytes.decoder.size);
	if (!content_in_refused(&whole.decoder)) {
		check_lines(&whole);
		assert(whole.header.received == bytes.header.received);
		assert(strcmp(whole.header.id, bytes.header.id) == 0);
		assert(buf_len(&whole.kept) == buf_len(&bytes.kept));
		assert(strcmp(buf_cstr(&whole.kept), buf_cstr(&bytes.kept)) == 0);
	}
	buf_fini(&whole.kept);
	buf_fini(&bytes.kept);
	return 0;
}
