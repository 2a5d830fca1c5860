/* SPDX-License-Identifier: ISC */
#include "base/conf_units.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct unit {
	const char *name;
	int64_t worth;
};

/* The smallest first. */
static const struct unit times[] = {
	{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}, {NULL, 0},
};
static const struct unit sizes[] = {
	{"", 1}, {"k", 1 << 10}, {"m", 1 << 20}, {"g", 1 << 30}, {NULL, 0},
};

static bool find_unit(const struct unit *u, const char *name, int64_t *worth)
{
	for (; u->name; u++) {
		if (strcmp(u->name, name) == 0) {
			*worth = u->worth;
			return true;
		}
	}
	return false;
}

/* A whole number in front; *rest is what follows. */
static bool read_whole(const char *text, const char **rest, int64_t *value)
{
	char *end;
	errno = 0;
	*value = strtoll(text, &end, 10);
	*rest = end;
	return end != text && !isspace((unsigned char)*text) && *text != '+' && errno == 0;
}

static bool not_a(enum conf_type type, const char *text, struct buf *why)
{
	static const char *const forms[] = {
		[CONF_number] = "a whole number",
		[CONF_duration] = "a duration like 500ms, 30s, 5m, 1h or 5d",
		[CONF_size] = "a size like 500, 64k, 10m or 1g",
		[CONF_percent] = "a percentage like 90%",
	};
	assert((size_t)type < sizeof forms / sizeof *forms && forms[type]);
	buf_printf(why, "must be %s, not \"%s\"", forms[type], text);
	return false;
}

bool conf_amount_parse(enum conf_type type, const char *text, int64_t *value, struct buf *why)
{
	const char *rest;
	int64_t n, worth = 1;
	if (!read_whole(text, &rest, &n))
		return not_a(type, text, why);
	if (type == CONF_duration && !(n == 0 && *rest == '\0') && !find_unit(times, rest, &worth))
		return not_a(type, text, why);
	char unit[2] = {(char)tolower((unsigned char)rest[0]), '\0'};
	if (type == CONF_size && (strlen(rest) > 1 || !find_unit(sizes, unit, &worth)))
		return not_a(type, text, why);
	if (type == CONF_percent && *rest && strcmp(rest, "%") != 0)
		return not_a(type, text, why);
	if ((type == CONF_number && *rest) || __builtin_mul_overflow(n, worth, value))
		return not_a(type, text, why);
	return true;
}

/* The largest unit that leaves no rest. */
static const struct unit *best_unit(const struct unit *u, int64_t value)
{
	const struct unit *best = u;
	for (; u->name; u++)
		if (value != 0 && value % u->worth == 0)
			best = u;
	return best;
}

void conf_amount_print(enum conf_type type, int64_t value, struct buf *to)
{
	if (type == CONF_duration && value == 0) {
		buf_puts(to, "0s");
		return;
	}
	if (type == CONF_number || type == CONF_percent) {
		buf_printf(to, "%" PRId64 "%s", value, type == CONF_percent ? "%" : "");
		return;
	}
	assert(type == CONF_duration || type == CONF_size);
	const struct unit *u = best_unit(type == CONF_duration ? times : sizes, value);
	buf_printf(to, "%" PRId64 "%s", value / u->worth, u->name);
}

/* A number with up to six digits behind the point: so many of the scale it is given in. */
static bool read_fraction(const char *text, const char **rest, int64_t *value, int64_t *scale)
{
	*scale = 1;
	if (!read_whole(text, rest, value) || *value < 0)
		return false;
	if (**rest != '.')
		return true;
	const char *digit = *rest + 1;
	for (; isdigit((unsigned char)*digit); digit++) {
		if (*scale == 1000000 || __builtin_mul_overflow(*value, 10, value))
			return false;
		*value += *digit - '0';
		*scale *= 10;
	}
	bool any = digit > *rest + 1;
	*rest = digit;
	return any;
}

static int64_t common_divisor(int64_t a, int64_t b)
{
	while (b) {
		int64_t left = a % b;
		a = b;
		b = left;
	}
	return a;
}

/* Whoever keeps to a rate reckons in microseconds, and with several nodes. */
#define RATE_EVENTS_MAX INT64_C(1000000000)
#define RATE_MS_MAX (INT64_C(36500) * 86400000)

static bool refuse_rate(const char *text, struct buf *why)
{
	buf_printf(why, "must be at most 1000000000 in at most 36500d, not \"%s\"", text);
	return false;
}

bool conf_rate_parse(const char *text, struct conf_rate *to, struct buf *why)
{
	const char *rest;
	int64_t events = 0, scale = 1, times_unit = 1, worth = 1000;
	*to = (struct conf_rate){0, 1000};
	if (*text == '\0')
		return true;
	bool good = read_fraction(text, &rest, &events, &scale) && *rest++ == '/';
	if (good && isdigit((unsigned char)*rest))
		good = read_whole(rest, &rest, &times_unit) && times_unit > 0;
	good = good && find_unit(times, rest, &worth) &&
	       !__builtin_mul_overflow(times_unit, worth, &worth) &&
	       !__builtin_mul_overflow(worth, scale, &worth);
	if (!good) {
		buf_printf(why, "must be a rate like 100/s, 30/m, 0.5/s or 5/10s, not \"%s\"",
			   text);
		return false;
	}
	if (events == 0)
		return true;
	/* Whole numbers: 0.5/s is 1 in two seconds. 100/s stays as it was written. */
	int64_t divisor = scale > 1 ? common_divisor(events, worth) : 1;
	if (events / divisor > RATE_EVENTS_MAX || worth / divisor > RATE_MS_MAX)
		return refuse_rate(text, why);
	*to = (struct conf_rate){events / divisor, worth / divisor};
	assert(to->events > 0 && to->per_ms > 0);
	return true;
}

void conf_rate_print(const struct conf_rate *r, struct buf *to)
{
	if (r->events == 0) {
		buf_puts(to, "\"\"");
		return;
	}
	const struct unit *u = best_unit(times, r->per_ms);
	int64_t n = r->per_ms / u->worth;
	buf_printf(to, "\"%" PRId64 "/", r->events);
	if (n != 1)
		buf_printf(to, "%" PRId64, n);
	buf_printf(to, "%s\"", u->name);
}

static const char *const forms[] = {
	[FEEDBACK_CONSTANT] = "",
	[FEEDBACK_CONCURRENCY] = "/concurrency",
	[FEEDBACK_SQRT_CONCURRENCY] = "/sqrt(concurrency)",
};

bool conf_feedback_parse(const char *text, struct conf_feedback *to, struct buf *why)
{
	char tight[64], *end;
	size_t len = 0;
	for (const char *c = text; *c && len < sizeof tight - 1; c++)
		if (!isblank((unsigned char)*c))
			tight[len++] = *c;
	tight[len] = '\0';
	double value = strtod(tight, &end);
	if (isdigit((unsigned char)tight[0]) && value >= 0 && value <= 1) {
		for (int form = FEEDBACK_CONSTANT; form <= FEEDBACK_SQRT_CONCURRENCY; form++) {
			if (strcmp(end, forms[form]) == 0) {
				to->form = form;
				to->value = value;
				return true;
			}
		}
	}
	buf_printf(why,
		   "must be 0 to 1, alone or with /concurrency or /sqrt(concurrency), not \"%s\"",
		   text);
	return false;
}

void conf_feedback_print(const struct conf_feedback *f, struct buf *to)
{
	assert((size_t)f->form < sizeof forms / sizeof *forms);
	buf_printf(to, "\"%.15g%s\"", f->value, forms[f->form]);
}
