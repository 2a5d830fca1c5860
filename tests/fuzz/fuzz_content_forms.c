/* SPDX-License-Identifier: ISC */
/* Content of any kind, cut anywhere, in each of the forms that it is given: made fit for seven bits, as DKIM
 * hashes it, with a field in front of it. The first byte is the size of the pieces. */
#include "tests/fuzz/fuzz.h"

#include "base/mem.h"
#include "base/tls_keys.h"
#include "dkim/author.h"
#include "dkim/canonical_body.h"
#include "dkim/signature.h"
#include "smtpc/seven_bit.h"

#include <openssl/evp.h>

static void convert(const char *bytes, size_t len, size_t piece, struct buf *to)
{
	struct seven_bit *s = seven_bit_new();
	for (size_t at = 0; at < len; at += piece)
		seven_bit_put(s, bytes + at, len - at < piece ? len - at : piece, to);
	seven_bit_end(s, to);
	seven_bit_free(&s);
}

static void append(void *owner, const char *bytes, size_t len)
{
	buf_append(owner, bytes, len);
}

static void canonical(const char *bytes, size_t len, size_t piece, bool relaxed, struct buf *to)
{
	struct canonical_body b;
	canonical_body_init(&b, relaxed, append, to);
	for (size_t at = 0; at < len; at += piece)
		canonical_body_put(&b, bytes + at, len - at < piece ? len - at : piece);
	canonical_body_end(&b);
}

static void expect_same(struct buf *a, struct buf *b)
{
	assert(buf_len(a) == buf_len(b));
	assert(buf_len(a) == 0 || memcmp(buf_data(a), buf_data(b), buf_len(a)) == 0);
	buf_fini(a);
	buf_fini(b);
}

static void check_forms(const char *bytes, size_t len, size_t piece)
{
	struct buf whole = {0}, parts = {0};
	convert(bytes, len, len + 1, &whole);
	convert(bytes, len, piece, &parts);
	expect_same(&whole, &parts);
	for (int relaxed = 0; relaxed < 2; relaxed++) {
		canonical(bytes, len, len + 1, relaxed, &whole);
		assert(relaxed || buf_len(&whole) >= 2);
		canonical(bytes, len, piece, relaxed, &parts);
		expect_same(&whole, &parts);
	}
}

static struct conf *settings(void)
{
	static struct conf_dkim own;
	static const struct conf_dkim *sorted[] = {&own};
	struct conf *c = conf_defaults();
	own.title = mem_strdup("own.test");
	own.selector = own.title;
	own.loaded = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	own.signing = tls_keys_signing(own.loaded);
	free(c->dkim);
	free(c->dkim_sorted);
	c->ndkim = 1;
	c->dkim = &own;
	c->dkim_sorted = sorted;
	return c;
}

/* A field goes in front, the ends come behind, and all between stays. */
static void check_signing(struct conf *conf, const char *bytes, size_t len)
{
	static const unsigned char hash[SIGNATURE_HASH];
	struct signers signers = {0};
	struct buf why = {0};
	struct passage *p = passage_new(conf, NULL, NULL, NULL, 1);
	char *copy = mem_alloc(len + 1);
	memcpy(copy, bytes, len);
	p->draft.content = content_in_memory(copy, len);
	p->draft.size = len;
	bool open = draft_open(&p->draft);
	assert(open);
	author_signers(p, &signers, &why);
	if (signers.n > 0) {
		assert(signers.n == 1 && !p->draft.broken);
		char *field = signature_make(signers.of[0].by, p->draft.field, p->draft.nfield,
					     hash, 1, 0);
		size_t front = strlen(field);
		draft_insert(&p->draft, 0, field);
		draft_complete(&p->draft);
		bool settled = draft_settle(&p->draft);
		assert(settled && p->draft.size >= front + len && p->draft.size <= front + len + 4);
		assert(memcmp(p->draft.content->memory + front, bytes, len) == 0);
	}
	signers_fini(&signers);
	buf_fini(&why);
	passage_free(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct conf *conf;
	if (!conf)
		conf = settings();
	/* A larger one would have a file. */
	if (size < 1 || size > 100000)
		return 0;
	check_forms((const char *)data + 1, size - 1, data[0] ? data[0] : 1);
	check_signing(conf, (const char *)data + 1, size - 1);
	return 0;
}
