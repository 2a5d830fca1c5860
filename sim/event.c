/* SPDX-License-Identifier: ISC */
#include "sim/event.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static const char *skip_blanks(const char *s)
{
	return s + strspn(s, " \t\r");
}

/* One string from its quote on; what follows its end, or NULL. \u escapes stay as they are: no
 * field that is looked at has any. */
static const char *read_string(const char *s, struct buf *to)
{
	buf_clear(to);
	if (*s++ != '"')
		return NULL;
	for (; *s && *s != '"'; s++) {
		if (*s == '\\' && s[1] && s[1] != 'u')
			s++;
		buf_append(to, s, 1);
	}
	return *s ? s + 1 : NULL;
}

static const char *read_value(const char *s, struct buf *to)
{
	if (*s == '"')
		return read_string(s, to);
	size_t len = strcspn(s, ",} \t\r");
	buf_clear(to);
	buf_append(to, s, len);
	return len ? s + len : NULL;
}

static bool json_field(const char *line, const char *key, struct buf *to)
{
	const char *s = skip_blanks(line);
	struct buf name = {0};
	bool found = false;
	if (*s == '{')
		s++;
	else
		s = NULL;
	while (s && !found) {
		s = read_string(skip_blanks(s), &name);
		s = s ? skip_blanks(s) : NULL;
		if (!s || *s != ':' || !(s = read_value(skip_blanks(s + 1), to)))
			break;
		found = strcmp(buf_cstr(&name), key) == 0;
		s = skip_blanks(s);
		s = *s == ',' ? s + 1 : NULL;
	}
	buf_fini(&name);
	return found;
}

bool event_time(const char *text, int64_t *wall_ms)
{
	struct tm tm = {0};
	int ms = 0, end = 0;
	int n = sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday,
		       &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &ms, &end);
	if (n != 7 || end == 0)
		return false;
	tm.tm_year -= 1900;
	tm.tm_mon--;
	*wall_ms = (int64_t)timegm(&tm) * 1000 + ms;
	return true;
}

/* One word, or what is in quotes; what follows it, or NULL. \xHH stays as it is, like \u. */
static const char *read_word(const char *s, struct buf *to)
{
	if (*s == '"')
		return read_string(s, to);
	size_t len = strcspn(s, " \t\r");
	buf_clear(to);
	buf_append(to, s, len);
	return len ? s + len : NULL;
}

/* The first three words have no keys: time, level, event. */
static bool text_field(const char *line, const char *key, struct buf *to)
{
	static const char *const first[] = {"time", "level", "event"};
	const char *s = line;
	for (int i = 0; i < 3; i++) {
		s = read_word(skip_blanks(s), to);
		if (!s)
			return false;
		if (strcmp(first[i], key) == 0)
			return true;
	}
	size_t len = strlen(key);
	while (*(s = skip_blanks(s))) {
		size_t name = strcspn(s, "= \t\r");
		bool wanted = name == len && memcmp(s, key, len) == 0;
		if (s[name] != '=')
			return false;
		s += name + 1;
		buf_clear(to);
		if (*s && !strchr(" \t\r", *s) && !(s = read_word(s, to)))
			return false;
		if (wanted)
			return true;
	}
	return false;
}

bool event_field(const char *line, const char *key, struct buf *to)
{
	int64_t when_ms;
	if (*skip_blanks(line) == '{')
		return json_field(line, key, to);
	/* What does not begin with a time is none of ours. */
	return event_time(skip_blanks(line), &when_ms) && text_field(line, key, to);
}
