/* SPDX-License-Identifier: ISC */
#include "base/verdict.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/refs.h"
#include "base/utf8.h"

#include <assert.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name, *dsn;
} classes[] = {
	[VERDICT_SENT] = {"sent", "2.0.0"},
	[VERDICT_DEFERRED] = {"deferred", "4.0.0"},
	[VERDICT_FAILED] = {"bounced", "5.0.0"},
	[VERDICT_IN_DOUBT] = {"in_doubt", "4.0.0"},
};

static const char *skip_number(const char *s)
{
	int digits = 0;
	while (isdigit((unsigned char)*s) && digits < 3)
		s++, digits++;
	return digits ? s : NULL;
}

/* RFC 3463 2: class "." subject "." detail, the class one digit, the others up to three. What comes
 * behind it; NULL: it does not begin with one. */
static const char *skip_dsn(const char *s)
{
	if (!s || !strchr("245", s[0]) || s[0] == '\0' || s[1] != '.')
		return NULL;
	s = skip_number(s + 2);
	return s && *s == '.' ? skip_number(s + 1) : NULL;
}

static bool is_dsn(const char *s)
{
	const char *behind = skip_dsn(s);
	return behind && *behind == '\0';
}

bool verdict_cites_dsn(const struct verdict *v)
{
	const char *behind = skip_dsn(v->text);
	return behind && (*behind == '\0' || *behind == ' ');
}

bool verdict_lacks_names(const struct verdict *v)
{
	return v->class == VERDICT_DEFERRED && v->code == 451 && !v->host[0] &&
	       strcmp(v->dsn, "4.4.3") == 0;
}

static struct verdict *make_verdict(enum verdict_stage stage, enum verdict_class class, int code,
				    const char *dsn, const char *host, const char *text,
				    int64_t when_ms)
{
	assert(class < VERDICT_CLASSES && stage < VERDICT_STAGES);
	char clean_host[VERDICT_HOST_MAX + 1], clean_text[VERDICT_TEXT_MAX + 1];
	size_t host_len = utf8_clean(clean_host, host ? host : "", VERDICT_HOST_MAX);
	size_t text_len = utf8_clean(clean_text, text ? text : "", VERDICT_TEXT_MAX);
	struct verdict *v = mem_alloc(sizeof *v + host_len + 1 + text_len + 1);
	char *strings = (char *)(v + 1);
	atomic_init(&v->refs, 1);
	v->class = class;
	v->stage = stage;
	v->code = code;
	snprintf(v->dsn, sizeof v->dsn, "%s", is_dsn(dsn) ? dsn : classes[class].dsn);
	v->host = memcpy(strings, clean_host, host_len + 1);
	v->text = memcpy(strings + host_len + 1, clean_text, text_len + 1);
	v->when_ms = when_ms;
	return v;
}

struct verdict *verdict_at(enum verdict_class class, int code, const char *dsn, const char *host,
			   const char *text, int64_t when_ms)
{
	return make_verdict(VERDICT_AT_UNKNOWN, class, code, dsn, host, text, when_ms);
}

struct verdict *verdict_new(enum verdict_class class, int code, const char *dsn, const char *host,
			    const char *text)
{
	return make_verdict(VERDICT_AT_NONE, class, code, dsn, host, text, clock_wall_ms());
}

struct verdict *verdict_answering(enum verdict_stage stage, enum verdict_class class, int code,
				  const char *dsn, const char *host, const char *text)
{
	return make_verdict(stage, class, code, dsn, host, text, clock_wall_ms());
}

struct verdict *verdict_reworded(const struct verdict *v, enum verdict_class class, const char *dsn,
				 const char *host, const char *text)
{
	return make_verdict(v->stage, class, v->code, dsn, host, text, v->when_ms);
}

struct verdict *verdict_printf(enum verdict_class class, int code, const char *dsn,
			       const char *host, const char *fmt, ...)
{
	char text[VERDICT_TEXT_MAX + 8]; /* room for a character that lies across the limit */
	va_list args;
	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	return verdict_new(class, code, dsn, host, text);
}

struct verdict *verdict_ref(struct verdict *v)
{
	if (v)
		refs_take(&v->refs);
	return v;
}

void verdict_unref(struct verdict *v)
{
	if (v && refs_drop(&v->refs))
		free(v);
}

const char *verdict_class_name(enum verdict_class class)
{
	assert(class < VERDICT_CLASSES);
	return classes[class].name;
}

bool verdict_class_is_name(const char *name)
{
	for (int i = 0; i < VERDICT_CLASSES; i++)
		if (strcmp(classes[i].name, name) == 0)
			return true;
	return false;
}
