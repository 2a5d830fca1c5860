/* SPDX-License-Identifier: ISC */
#include "base/utf8.h"

#include <stdint.h>
#include <string.h>

bool utf8_is_ascii(const char *text)
{
	while (*text && (unsigned char)*text < 128)
		text++;
	return *text == '\0';
}

/* Eight bytes at once: all of a content is looked at. */
bool utf8_beyond_ascii(const char *bytes, size_t len)
{
	uint64_t all = 0, word;
	for (; len >= sizeof word; bytes += sizeof word, len -= sizeof word) {
		memcpy(&word, bytes, sizeof word);
		all |= word;
	}
	word = 0;
	if (len > 0)
		memcpy(&word, bytes, len);
	return (all | word) & UINT64_C(0x8080808080808080);
}

size_t utf8_mark(const char *text)
{
	static const char mark[] = "\xef\xbb\xbf";
	size_t len = strlen(mark);
	return strncmp(text, mark, len) == 0 ? len : 0;
}

size_t utf8_length(const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	if (s[0] < 0x80)
		return s[0] != 0;
	size_t len = s[0] >= 0xc2 && s[0] < 0xe0   ? 2
		     : s[0] >= 0xe0 && s[0] < 0xf0 ? 3
		     : s[0] >= 0xf0 && s[0] < 0xf5 ? 4
						   : 0;
	for (size_t i = 1; i < len; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xf0 && s[1] < 0x90))
		return 0; /* overlong */
	if ((s[0] == 0xed && s[1] >= 0xa0) || (s[0] == 0xf4 && s[1] >= 0x90))
		return 0; /* a surrogate, or above U+10FFFF */
	return len;
}

size_t utf8_shown(const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t len = utf8_length(text);
	if (len == 1)
		return s[0] >= 0x20 && s[0] != 0x7f;
	return len == 2 && s[0] == 0xc2 && s[1] < 0xa0 ? 0 : len; /* C1 */
}

size_t utf8_clean(char *to, const char *text, size_t max)
{
	size_t used = 0;
	while (*text) {
		size_t len = utf8_length(text), shown = utf8_shown(text);
		size_t out = shown ? shown : 1;
		if (used + out > max)
			break;
		memcpy(to + used, shown ? text : "?", out);
		used += out;
		text += len ? len : 1;
	}
	to[used] = '\0';
	return used;
}

void utf8_put_most(struct buf *to, const char *text, size_t max)
{
	size_t len = strnlen(text, max);
	char *clean = buf_reserve(to, len + 1);
	buf_commit(to, utf8_clean(clean, text, len));
}

void utf8_put_ascii(struct buf *to, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		bool first = (text[i] & 0xc0) == 0xc0;
		if (first || !(text[i] & 0x80))
			buf_append(to, first ? "?" : text + i, 1);
	}
}

void utf8_put(struct buf *to, const char *text)
{
	utf8_put_most(to, text, strlen(text));
}
