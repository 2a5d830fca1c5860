/* bytes.h - numbers as they lie on disk: little-endian, not aligned.
 *
 * THREAD     Any.
 */
#ifndef SPOOL_BYTES_H
#define SPOOL_BYTES_H

#include <stdint.h>

static inline void put_le(uint8_t *to, uint64_t value, int bytes)
{
	for (int i = 0; i < bytes; i++, value >>= 8)
		to[i] = (uint8_t)value;
}

static inline uint64_t get_le(const uint8_t *from, int bytes)
{
	uint64_t value = 0;
	for (int i = bytes - 1; i >= 0; i--)
		value = value << 8 | from[i];
	return value;
}

#endif
