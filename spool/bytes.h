/* bytes.h - numbers as they lie on disk: little-endian, not aligned.
 *
 * THREAD     Any.
 */
#ifndef SPOOL_BYTES_H
#define SPOOL_BYTES_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

static inline void put_le(uint8_t *to, uint64_t value, int bytes)
{
	value = htole64(value);
	memcpy(to, &value, (size_t)bytes);
}

static inline uint64_t get_le(const uint8_t *from, int bytes)
{
	uint64_t value = 0;
	memcpy(&value, from, (size_t)bytes);
	return le64toh(value);
}

#endif
