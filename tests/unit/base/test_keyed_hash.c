/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "base/keyed_hash.h"
#include "tests/unit/base/sanitized.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES = SANITIZED ? 1000 : 10000, BUCKETS = 1 << 15, CHOSEN_BITS = 0xfff };

/* The values for the key 0 are those that Python 3.11 gives: PYTHONHASHSEED=0, hash(b"example.com"). */
static void it_is_siphash_1_3(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		uint64_t hash;
	} known[] = {
		{"a", 0x407448d2b89b1813},
		{"abcdefg", 0x6db12aae9070f506},
		{"abcdefgh", 0x3f7b849c0b8e35ea},
		{"example.com", 0x7e0432aaedb1758c},
	};
	const uint64_t none[2] = {0}, key[2] = {0x0706050403020100, 0x0f0e0d0c0b0a0908};
	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
		assert_true(keyed_hash_with(none, known[i].text, strlen(known[i].text)) ==
			    known[i].hash);
	assert_true(keyed_hash_with(key, "", 0) == 0xabac0158050fc4dc);
}

static void every_byte_and_the_length_count(void **state)
{
	(void)state;
	char text[40] = {0};
	for (size_t len = 1; len <= sizeof text; len++) {
		uint64_t of = keyed_hash(text, len);
		assert_int_not_equal(of, keyed_hash(text, len - 1));
		for (size_t i = 0; i < len; i++) {
			text[i] ^= 1;
			assert_int_not_equal(of, keyed_hash(text, len));
			text[i] ^= 1;
		}
	}
}

/* One that has no key: whoever knows it chooses such names. */
static uint32_t fnv(const char *name)
{
	uint32_t h = 2166136261u;
	for (; *name; name++)
		h = (h ^ (uint8_t)*name) * 16777619u;
	return h;
}

static void names_chosen_to_collide_do_not(void **state)
{
	(void)state;
	static unsigned count[BUCKETS];
	unsigned found = 0, most = 0;
	char name[40];
	keyed_hash_choose();
	for (unsigned i = 0; found < NAMES; i++) {
		snprintf(name, sizeof name, "d%u.evil.example", i);
		if ((fnv(name) & CHOSEN_BITS) != 0)
			continue;
		unsigned *at = &count[keyed_hash(name, strlen(name)) % BUCKETS];
		if (++*at > most)
			most = *at;
		found++;
	}
	assert_in_range(most, 1, 12);
}

struct named {
	const char *name;
	UT_hash_handle hh;
};

static void rows_are_walked_in_the_order_in_which_they_came_and_may_be_removed(void **state)
{
	(void)state;
	static const char *const names[] = {"one", "two", "three"};
	struct named *table = NULL;
	int walked = 0;
	hash_each (struct named, none, table)
		assert_null(none);
	for (int i = 0; i < 3; i++) {
		struct named *n = mem_zalloc(sizeof *n);
		n->name = names[i];
		HASH_ADD_KEYPTR(hh, table, n->name, strlen(n->name), n);
	}
	hash_each (struct named, n, table) {
		assert_string_equal(n->name, names[walked++]);
		HASH_DEL(table, n);
		free(n);
	}
	assert_int_equal(walked, 3);
	assert_null(table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_siphash_1_3),
		cmocka_unit_test(every_byte_and_the_length_count),
		cmocka_unit_test(names_chosen_to_collide_do_not),
		cmocka_unit_test(
			rows_are_walked_in_the_order_in_which_they_came_and_may_be_removed),
	};
	return RUN(tests);
}
