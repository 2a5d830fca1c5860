/* SPDX-License-Identifier: ISC */
#include "base/mailaddr.h"

#include <string.h>

static const char hex[] = "0123456789ABCDEF";

static bool is_xchar(unsigned char ch)
{
	return ch > 32 && ch < 127 && ch != '+' && ch != '=';
}

bool xtext_decode(const char *text, size_t len, char *to, size_t size)
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
		if (ch < 32 || ch > 126 || n + 1 >= size)
			return false;
		to[n++] = (char)ch;
	}
	if (n >= size)
		return false;
	to[n] = '\0';
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
