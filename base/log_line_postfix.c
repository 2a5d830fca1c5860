/* SPDX-License-Identifier: ISC */
#include "base/log_forms.h"
#include "base/log_line.h"

#include <string.h>

/* name[address] of which the name is unknown is the address alone, as our other forms have it. */
static void strip_unknown(struct log_field *f)
{
	static const char unknown[] = "unknown[";
	size_t head = sizeof unknown - 1;
	if (f->key_len != 6 || memcmp(f->key, "client", 6) != 0)
		return;
	if (f->len > head && memcmp(f->text, unknown, head) == 0) {
		f->text += head;
		f->len -= head + 1;
	}
}

/* The literal that follows a value ends it: the first such, or, at the end of the line, the last. */
static const char *end_of_value(const char *s, const char *end, const char *literal, size_t len,
				bool last)
{
	if (last)
		return (size_t)(end - s) >= len && memcmp(end - len, literal, len) == 0 ? end - len
											: NULL;
	return memmem(s, (size_t)(end - s), literal, len);
}

static bool read_as(struct log_line *l, const struct log_form *form, const char *s, const char *end)
{
	const char *t = form->text;
	size_t plain = strcspn(t, "{");
	l->n = 0;
	if ((size_t)(end - s) < plain || memcmp(s, t, plain) != 0)
		return false;
	s += plain;
	for (t += plain; *t;) {
		size_t key = strcspn(t + 1, "=}");
		const char *literal = t + strcspn(t, "}") + 1;
		plain = strcspn(literal, "{");
		const char *stop = end_of_value(s, end, literal, plain, !literal[plain]);
		if (!stop)
			return false;
		struct log_field f = {t + 1, s, key, (size_t)(stop - s), LOG_PLAIN};
		strip_unknown(&f);
		log_line_add(l, f.key, f.key_len, f.text, f.len, LOG_PLAIN);
		s = stop + plain;
		t = literal + plain;
	}
	return s == end;
}

static bool read_form(struct log_line *l, const struct log_form *form, const char *s,
		      const char *end)
{
	if (!read_as(l, form, s, end))
		return false;
	l->event = form->event;
	l->event_len = strlen(form->event);
	if (form->key)
		log_line_add(l, form->key, strlen(form->key), form->value, strlen(form->value),
			     LOG_PLAIN);
	return true;
}

/* The sign of " key=", from s on; end: there is none. */
static const char *next_sign(const char *s, const char *end)
{
	const char *sign = s;
	while (sign < end && (sign = memchr(sign, '=', (size_t)(end - sign))) != NULL) {
		const char *key = sign;
		while (key > s && ((key[-1] >= 'a' && key[-1] <= 'z') || key[-1] == '_'))
			key--;
		if (key < sign && key > s && key[-1] == ' ')
			return sign;
		sign++;
	}
	return end;
}

/* "[LEVEL: ]EVENT KEY=VALUE KEY=VALUE": a value ends where the next key begins. */
static bool read_other(struct log_line *l, const char *s, const char *end)
{
	const char *colon = memchr(s, ':', (size_t)(end - s)), *blank;
	blank = memchr(s, ' ', (size_t)(end - s));
	if (colon && blank == colon + 1)
		s = blank + 1;
	blank = memchr(s, ' ', (size_t)(end - s));
	l->n = 0;
	l->event = s;
	l->event_len = (size_t)((blank ? blank : end) - s);
	for (const char *sign = next_sign(s, end); sign < end;) {
		const char *key = sign, *next = next_sign(sign + 1, end), *stop = next;
		while (key[-1] != ' ')
			key--;
		while (next < end && *stop != ' ')
			stop--;
		log_line_add(l, key, (size_t)(sign - key), sign + 1, (size_t)(stop - sign - 1),
			     LOG_PLAIN);
		sign = next;
	}
	return l->event_len > 0;
}

bool log_line_postfix(struct log_line *l, const char *program, size_t program_len, const char *text,
		      const char *end)
{
	for (int i = 0; i < LOG_FORMS; i++) {
		const struct log_form *form = &log_forms[i];
		if (strlen(form->program) == program_len &&
		    memcmp(form->program, program, program_len) == 0 &&
		    read_form(l, form, text, end))
			return true;
	}
	return read_other(l, text, end);
}
