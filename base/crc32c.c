/* SPDX-License-Identifier: ISC */
#include "base/crc32c.h"

#include <isa-l/crc.h>

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
