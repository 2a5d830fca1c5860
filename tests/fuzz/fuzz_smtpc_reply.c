/* SPDX-License-Identifier: ISC */
/* Replies of any kind, cut anywhere: the parser stays within its bounds, however it is fed, and an
 * engine with two messages brings both back. The first byte is the size of the pieces. */
#include "tests/fuzz/fuzz.h"

#include "base/mem.h"
#include "smtpc/engine.h"

static void feed_parser(const char *bytes, size_t len, size_t piece)
{
	struct reply r;
	char text[REPLY_TEXT_MAX + 1];
	enum reply_result result = REPLY_MORE;
	reply_init(&r);
	for (size_t at = 0, used; at < len && result != REPLY_BAD; at += used) {
		size_t n = len - at < piece ? len - at : piece;
		result = reply_feed(&r, bytes + at, n, &used);
		assert(used <= n && r.nline <= REPLY_LINES_MAX + 1);
		if (result != REPLY_DONE)
			continue;
		assert(r.code >= 200 && r.code <= 599);
		assert(strlen(reply_text(&r, text)) <= REPLY_TEXT_MAX);
		capability_of(&r);
		reply_reset(&r);
	}
	reply_fini(&r);
}

static struct delivery *message(const char *to)
{
	struct delivery *d = delivery_new(2);
	d->sender = "s@test";
	d->ahead = true;
	d->content = content_in_memory(mem_strdup(".\r\n"), 3);
	d->rcpt[0].address = d->rcpt[1].address = to;
	return d;
}

static void feed_engine(const char *bytes, size_t len, size_t piece)
{
	static struct conf_transport transport = {.pipeline_depth = 2};
	struct engine_setup setup = {.hostname = "me.test",
				     .peer = "mx.test",
				     .transport = &transport,
				     .tls = TRANSPORT_TLS_OPPORTUNISTIC,
				     .mode = CONNECTION_FULL};
	struct engine e;
	struct buf in, out;
	int given = 0, back = 0;
	buf_init(&in);
	buf_init(&out);
	engine_init(&e, &setup, &out);
	for (size_t at = 0; at < len && e.state != ENGINE_CLOSED; at += piece) {
		buf_append(&in, bytes + at, len - at < piece ? len - at : piece);
		engine_input(&e, &in);
		if (e.state == ENGINE_HANDSHAKE)
			engine_secured(&e);
		while (e.state == ENGINE_READY && given < 2)
			engine_give(&e, message(given++ ? "b@test" : "a@test"));
		buf_clear(&out);
	}
	engine_drop(&e);
	for (struct delivery *d; (d = engine_take(&e)); back++)
		delivery_free(&d);
	assert(back == given);
	engine_fini(&e);
	buf_fini(&in);
	buf_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	size_t piece = data[0] ? data[0] : 100000;
	feed_parser((const char *)data + 1, size - 1, piece);
	feed_engine((const char *)data + 1, size - 1, piece);
	return 0;
}
