/* SPDX-License-Identifier: ISC */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/crc32c.h"
#include "replica/format.h"

#include <stdlib.h>
#include <string.h>

static size_t message(uint8_t *to)
{
	struct replica_head h = {.type = REPLICA_LOG,
				 .epoch = 3,
				 .number = UINT64_C(1) << 40,
				 .of = 77,
				 .offset = 8192,
				 .size = 16 << 20,
				 .length = 5,
				 .crc = crc32c(0, "bytes", 5)};
	replica_head_put(to, &h);
	memcpy(to + REPLICA_HEAD, "bytes", 5);
	return REPLICA_HEAD + 5;
}

static void what_was_put_is_got(void **state)
{
	uint8_t m[REPLICA_HEAD + 5];
	struct replica_head h;
	const uint8_t *payload;
	(void)state;
	size_t len = message(m);
	assert_true(replica_message_get(m, len, &h, &payload));
	assert_int_equal(h.type, REPLICA_LOG);
	assert_int_equal(h.epoch, 3);
	assert_int_equal(h.number, UINT64_C(1) << 40);
	assert_int_equal(h.of, 77);
	assert_int_equal(h.offset, 8192);
	assert_int_equal(h.size, 16 << 20);
	assert_memory_equal(payload, "bytes", 5);
}

static void a_byte_changed_anywhere_is_found(void **state)
{
	uint8_t m[REPLICA_HEAD + 5];
	struct replica_head h;
	const uint8_t *payload;
	(void)state;
	size_t len = message(m);
	for (size_t i = 0; i < len; i++) {
		m[i] ^= 1;
		assert_false(replica_message_get(m, len, &h, &payload));
		m[i] ^= 1;
		assert_false(replica_message_get(m, i, &h, &payload));
	}
}

static void names_of_nodes_are_told_apart(void **state)
{
	char token[REPLICA_TOKEN], node[REPLICA_NODE_MAX + 1];
	const char *const names[] = {"mx1", "mx1.example.org", "mx1_example-org",
				     "a b>*/\\.=", "\xc3\xa4"};
	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		assert_null(strpbrk(replica_token(names[i], token), ". *>/\\"));
		assert_true(replica_token_parse(token, node));
		assert_string_equal(node, names[i]);
	}
	assert_false(replica_token_parse("", node));
	assert_false(replica_token_parse("a=2", node));
	assert_false(replica_token_parse("a=zz", node));
	assert_false(replica_token_parse("a=41", node));
	assert_false(replica_token_parse("a.b", node));
}

static void subjects_are_of_one_epoch_and_one_file(void **state)
{
	(void)state;
	char *all = replica_subjects("mx1.example.org", 7);
	char *log = replica_subject("mx1.example.org", 7, REPLICA_MARKS, 255);
	char *complete = replica_subject("mx1.example.org", 7, REPLICA_COMPLETE, 0);
	assert_string_equal(all, "sluice.mx1=2Eexample=2Eorg.7.>");
	assert_string_equal(log, "sluice.mx1=2Eexample=2Eorg.7.log.00000000000000ff");
	assert_string_equal(complete, "sluice.mx1=2Eexample=2Eorg.7.state");
	free(all);
	free(log);
	free(complete);
}

static void an_epoch_is_read_as_it_was_written(void **state)
{
	struct replica_epoch e = {.epoch = 12,
				  .state = REPLICA_ADOPTED,
				  .by = "mx2",
				  .seen_ms = 99},
			     f;
	struct buf b;
	(void)state;
	buf_init(&b);
	replica_epoch_put(&b, &e);
	assert_true(replica_epoch_get(buf_data(&b), buf_len(&b), &f));
	assert_int_equal(f.epoch, 12);
	assert_int_equal(f.state, REPLICA_ADOPTED);
	assert_string_equal(f.by, "mx2");
	assert_int_equal(f.seen_ms, 99);
	assert_string_equal(f.with, "");
	assert_false(replica_epoch_get("{}", 2, &f));
	assert_false(replica_epoch_get("", 0, &f));
	buf_fini(&b);
	strcpy(e.with, "mx3");
	e.ahead_ms = -7200000;
	replica_epoch_put(&b, &e);
	assert_true(replica_epoch_get(buf_data(&b), buf_len(&b), &f));
	assert_string_equal(f.with, "mx3");
	assert_int_equal(f.ahead_ms, -7200000);
	buf_fini(&b);
}

static void a_claim_is_read_as_it_was_written(void **state)
{
	const struct replica_epoch e = {.epoch = 12,
					.state = REPLICA_ADOPTING,
					.by = "mx \"2\"",
					.seen_ms = 99,
					.lease_ms = 15000,
					.life = 0xabcdef0123456789,
					.number = 7,
					.ids_us = 1700000000000000,
					.since = 5};
	struct replica_epoch f;
	(void)state;
	char *text = replica_claim(&e);
	assert_null(strpbrk(text, "\"\\")); /* nobody escapes it */
	assert_true(replica_claim_get(text, &f));
	char *again = replica_claim(&f);
	assert_string_equal(again, text);
	assert_string_equal(f.by, e.by);
	assert_int_equal(f.state, e.state);
	assert_int_equal(f.alone, ALONE_AS_BEFORE);
	assert_false(replica_claim_get("the queue of mx2", &f));
	f = e;
	f.alone = ALONE_SAID;
	char *alone = replica_claim(&f);
	assert_true(replica_claim_get(alone, &f));
	assert_int_equal(f.alone, ALONE_SAID);
	free(alone);
	free(again);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_claim_is_read_as_it_was_written),
		cmocka_unit_test(what_was_put_is_got),
		cmocka_unit_test(a_byte_changed_anywhere_is_found),
		cmocka_unit_test(names_of_nodes_are_told_apart),
		cmocka_unit_test(subjects_are_of_one_epoch_and_one_file),
		cmocka_unit_test(an_epoch_is_read_as_it_was_written),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
