/* SPDX-License-Identifier: ISC */
#include "base/crc32c.h"

#include <isa-l/crc.h>
#include <stdio.h>
#include <string.h>

uint32_t crc32c(uint32_t before, const void *data, size_t len)
{
	const uint8_t *p = data;
	uint32_t crc = ~before;
	while (len > 0) {
		size_t n = len < (1 << 30) ? len : 1 << 30; /* the library counts in int */
		crc = crc32_iscsi((unsigned char *)p, (int)n, crc);
		p += n;
		len -= n;
	}
	return ~crc;
}

bool crc32c_text_good(const char *text, size_t len, const char *first_line)
{
	unsigned crc;
	size_t first = strlen(first_line);
	return len >= first + CRC32C_LINE && strncmp(text, first_line, first) == 0 &&
	       sscanf(text + len - CRC32C_LINE, "crc %8x\n", &crc) == 1 &&
	       crc == crc32c(0, text, len - CRC32C_LINE);
}
