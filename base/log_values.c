/* SPDX-License-Identifier: ISC */
#include "base/log_values.h"

#include "base/ident.h"
#include "base/internet_time.h"
#include "base/log.h"
#include "base/verdict.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A slot has room for the whole reply of a verdict, with its code: what is too long for the log is cut
 * there, where that is said. EACH_MAX times of 25 bytes fit into one. */
enum { SLOTS = 16, SLOT_SIZE = VERDICT_TEXT_MAX + 16, EACH_MAX = 16 };

struct slot {
	bool number;
	char text[SLOT_SIZE];
};

static _Thread_local struct slot ring[SLOTS];
static _Thread_local unsigned next;

static struct slot *take_slot(bool number)
{
	struct slot *s = &ring[next++ % SLOTS];
	s->number = number;
	return s;
}

bool log_is_number(const char *value)
{
	uintptr_t into = (uintptr_t)value - (uintptr_t)ring;
	return into < sizeof ring && ring[into / sizeof *ring].number;
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
	struct slot *s = take_slot(true);
	*write_digits(write_sign(s->text, n), size_of(n)) = '\0';
	return s->text;
}

/* Up to their last that is not 0, which there is. */
static char *write_thousandths(char *to, unsigned n)
{
	const char digits[] = {(char)('0' + n / 100), (char)('0' + n / 10 % 10),
			       (char)('0' + n % 10)};
	assert(n > 0 && n < 1000);
	*to++ = '.';
	memcpy(to, digits, sizeof digits);
	return to + (n % 10 > 0 ? 3 : n % 100 > 0 ? 2 : 1);
}

static char *write_seconds(char *to, int64_t ms)
{
	unsigned rest = (unsigned)(size_of(ms) % 1000);
	to = write_digits(write_sign(to, ms), size_of(ms) / 1000);
	return rest > 0 ? write_thousandths(to, rest) : to;
}

const char *log_seconds(int64_t ms)
{
	struct slot *s = take_slot(true);
	*write_seconds(s->text, ms) = '\0';
	return s->text;
}

const char *log_time(int64_t wall_ms)
{
	return internet_time_text(wall_ms, take_slot(false)->text);
}

const char *log_seconds_each(const int64_t ms[], int n)
{
	assert(n > 0 && n <= EACH_MAX);
	struct slot *s = take_slot(false);
	char *end = write_seconds(s->text, ms[0]);
	for (int i = 1; i < n; i++) {
		*end++ = '/';
		end = write_seconds(end, ms[i]);
	}
	*end = '\0';
	return s->text;
}

const char *log_reply(int code, const char *text)
{
	if (code == 0)
		return text;
	struct slot *s = take_slot(false);
	char *end = write_digits(write_sign(s->text, code), size_of(code));
	size_t room = (size_t)(s->text + sizeof s->text - end) - 2, len = strnlen(text, room);
	*end++ = ' ';
	memcpy(end, text, len);
	end[len] = '\0';
	return s->text;
}

const char *log_id(uint64_t id)
{
	return ident_text(id, take_slot(false)->text);
}

const char *log_text(const char *fmt, ...)
{
	struct slot *s = take_slot(false);
	va_list args;
	va_start(args, fmt);
	vsnprintf(s->text, sizeof s->text, fmt, args);
	va_end(args);
	return s->text;
}
