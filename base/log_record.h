/* log_record.h - one event, and how it travels from the thread that has it to the one that writes it.
 *
 *	log_event() -> log_record_pack() -> [ bytes ] -> log_record_unpack() -> log_format.c
 *
 * What a line looks like is the log thread's work: of the threads that mail waits for, an event takes no
 * more than a copy of its values.
 *
 * OWNERSHIP  A record points at its caller's values, one that was unpacked into the bytes. The event's
 *            name and the keys are never copied: they last as long as the program.
 * THREAD     Any.
 * ERRORS     None.
 */
#ifndef BASE_LOG_RECORD_H
#define BASE_LOG_RECORD_H

#include "base/log.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LOG_PAIRS_MAX = 40 };

struct log_pair {
	const char *key, *value;
	size_t len;  /* of the value, without its NUL */
	bool number; /* in JSON without quotes */
};

struct log_record {
	enum log_level level;
	const char *event;
	int64_t wall_ms;
	bool syslog; /* the receiver adds time, host and program */
	int npair;
	struct log_pair pair[LOG_PAIRS_MAX];
};

size_t log_record_size(const struct log_record *);
/* Bytes that it takes when packed, a multiple of eight. */

void log_record_pack(const struct log_record *, size_t size, void *to);
/* to: size bytes, as log_record_size() has it, at an address that is a multiple of eight. Of a value longer than
 * LOG_VALUE_MAX only its beginning is packed, and how long it was. Where the log goes is not packed. */

const void *log_record_unpack(struct log_record *, const void *from);
/* Returns what follows it. */

#endif
