/* SPDX-License-Identifier: ISC */
#include "base/keyed_hash.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static uint64_t own_key[2];

void keyed_hash_choose(void)
{
	if (getrandom(own_key, sizeof own_key, 0) != (ssize_t)sizeof own_key) {
		perror("sluice: getrandom");
		abort();
	}
}

struct state {
	uint64_t a, b, c, d;
};

static inline uint64_t rotate_left(uint64_t x, int by)
{
	return x << by | x >> (64 - by);
}

static inline void mix_state(struct state *s)
{
	s->a += s->b;
	s->c += s->d;
	s->b = rotate_left(s->b, 13) ^ s->a;
	s->d = rotate_left(s->d, 16) ^ s->c;
	s->a = rotate_left(s->a, 32);
	s->c += s->b;
	s->a += s->d;
	s->b = rotate_left(s->b, 17) ^ s->c;
	s->d = rotate_left(s->d, 21) ^ s->a;
	s->c = rotate_left(s->c, 32);
}

static inline void take_word(struct state *s, uint64_t word)
{
	s->d ^= word;
	mix_state(s);
	s->a ^= word;
}

/* Bytes that are missing to eight are zero. */
static inline uint64_t read_word(const unsigned char *p, size_t len)
{
	uint64_t word = 0;
	memcpy(&word, p, len);
	return le64toh(word);
}

uint64_t keyed_hash_with(const uint64_t key[2], const void *data, size_t len)
{
	/* "somepseudorandomlygeneratedbytes", as the paper has it */
	struct state s = {key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d,
			  key[0] ^ 0x6c7967656e657261, key[1] ^ 0x7465646279746573};
	const unsigned char *p = data;
	size_t left = len;
	for (; left >= 8; left -= 8, p += 8)
		take_word(&s, read_word(p, 8));
	take_word(&s, read_word(p, left) | (uint64_t)len << 56);
	s.c ^= 0xff;
	for (int i = 0; i < 3; i++)
		mix_state(&s);
	return s.a ^ s.b ^ s.c ^ s.d;
}

uint64_t keyed_hash(const void *data, size_t len)
{
	return keyed_hash_with(own_key, data, len);
}
