/* SPDX-License-Identifier: ISC */
#include "base/log_values.h"

#include "base/ident.h"
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { SLOTS = 16, SLOT_SIZE = 512 };

struct slot {
	bool number;
	char text[SLOT_SIZE];
};

static _Thread_local struct slot ring[SLOTS];
static _Thread_local unsigned next;

static struct slot *take(bool number)
{
	struct slot *s = &ring[next++ % SLOTS];
	s->number = number;
	return s;
}

bool log_is_number(const char *value)
{
	for (int i = 0; i < SLOTS; i++)
		if (value == ring[i].text)
			return ring[i].number;
	return false;
}

/* Every line of the log has several of these, and printf() would take most of the time of a line. */
static char *write_digits(char *to, uint64_t n)
{
	char digits[20];
	int len = 0;
	do
		digits[len++] = (char)('0' + n % 10);
	while ((n /= 10) > 0);
	while (len > 0)
		*to++ = digits[--len];
	return to;
}

static char *write_sign(char *to, int64_t n)
{
	if (n < 0)
		*to++ = '-';
	return to;
}

static uint64_t size_of(int64_t n)
{
	return n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
}

const char *log_number(int64_t n)
{
	struct slot *s = take(true);
	*write_digits(write_sign(s->text, n), size_of(n)) = '\0';
	return s->text;
}

const char *log_seconds(int64_t ms)
{
	struct slot *s = take(true);
	unsigned rest = (unsigned)(size_of(ms) % 1000);
	char *end = write_digits(write_sign(s->text, ms), size_of(ms) / 1000);
	if (rest > 0)
		*end++ = '.';
	for (unsigned unit = 100; rest > 0; rest %= unit, unit /= 10)
		*end++ = (char)('0' + rest / unit);
	*end = '\0';
	return s->text;
}

const char *log_id(uint64_t id)
{
	return ident_text(id, take(false)->text);
}

const char *log_text(const char *fmt, ...)
{
	struct slot *s = take(false);
	va_list args;
	va_start(args, fmt);
	vsnprintf(s->text, sizeof s->text, fmt, args);
	va_end(args);
	return s->text;
}
