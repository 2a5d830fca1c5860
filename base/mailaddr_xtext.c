/* SPDX-License-Identifier: ISC */
#include "base/mailaddr.h"

#include "base/utf8.h"

#include <string.h>

static const char hex[] = "0123456789ABCDEF";

static bool is_xchar(unsigned char ch)
{
	return ch > 32 && ch < 127 && ch != '+' && ch != '=';
}

static bool is_octet(unsigned char ch, bool beyond)
{
	return ch >= 32 && ch != 127 && (beyond || ch < 127);
}

static bool decode_octets(const char *text, size_t len, bool beyond, char *to, size_t size)
{
	size_t n = 0;
	for (size_t i = 0; i < len; i++) {
		unsigned char ch = (unsigned char)text[i];
		if (ch == '+') {
			const char *high =
				i + 2 < len && text[i + 1] ? strchr(hex, text[i + 1]) : NULL;
			const char *low = high && text[i + 2] ? strchr(hex, text[i + 2]) : NULL;
			if (!low)
				return false;
			ch = (unsigned char)((high - hex) << 4 | (low - hex));
			i += 2;
		} else if (!is_xchar(ch)) {
			return false;
		}
		if (!is_octet(ch, beyond) || n + 1 >= size)
			return false;
		to[n++] = (char)ch;
	}
	if (n >= size)
		return false;
	to[n] = '\0';
	return true;
}

bool xtext_decode(const char *text, size_t len, char *to, size_t size)
{
	return decode_octets(text, len, false, to, size);
}

bool xtext_decode_utf8(const char *text, size_t len, char *to, size_t size)
{
	if (!decode_octets(text, len, true, to, size))
		return false;
	while (*to) {
		size_t character = utf8_length(to);
		if (character == 0)
			return false;
		to += character;
	}
	return true;
}

void xtext_encode(const char *text, char *to, size_t size)
{
	size_t n = 0;
	for (; *text; text++) {
		unsigned char ch = (unsigned char)*text;
		size_t need = is_xchar(ch) ? 1 : 3;
		if (n + need >= size)
			break;
		if (need == 1) {
			to[n++] = (char)ch;
		} else {
			to[n++] = '+';
			to[n++] = hex[ch >> 4];
			to[n++] = hex[ch & 15];
		}
	}
	to[n] = '\0';
}
