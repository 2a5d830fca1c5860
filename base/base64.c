/* SPDX-License-Identifier: ISC */
#include "base/base64.h"

#include <assert.h>
#include <limits.h>
#include <openssl/evp.h>

void base64_encode(struct buf *to, const void *from, size_t len)
{
	assert(len <= INT_MAX / 4 * 3); /* the library counts in int */
	char *place = buf_reserve(to, (len + 2) / 3 * 4 + 1);
	buf_commit(to, (size_t)EVP_EncodeBlock((unsigned char *)place, from, (int)len));
}

static int value_of(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool base64_decode(struct buf *to, const char *from, size_t len)
{
	static const int unused[] = {0, 3, 15}; /* bits of the last character, by the padding */
	size_t padding = 0;
	if (len % 4 != 0 || len > INT_MAX)
		return false;
	while (padding < 2 && padding < len && from[len - 1 - padding] == '=')
		padding++;
	for (size_t i = 0; i < len - padding; i++)
		if (value_of(from[i]) < 0)
			return false;
	if (len == 0)
		return true;
	if (value_of(from[len - padding - 1]) & unused[padding])
		return false;
	char *place = buf_reserve(to, len / 4 * 3);
	int n = EVP_DecodeBlock((unsigned char *)place, (const unsigned char *)from, (int)len);
	if (n < 0)
		return false;
	buf_commit(to, (size_t)n - padding);
	return true;
}
