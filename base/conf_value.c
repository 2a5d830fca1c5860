/* SPDX-License-Identifier: ISC */
#include "base/conf_value.h"

#include "base/conf_units.h"
#include "base/mailaddr.h"
#include "base/mem.h"
#include "base/name_key.h"
#include "base/utf8.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* -1: it is neither. */
static int read_flag(const char *text)
{
	static const char *const words[] = {"false", "true", "no", "yes", "off", "on"};
	for (int i = 0; i < 6; i++)
		if (strcasecmp(text, words[i]) == 0)
			return i % 2;
	return -1;
}

static bool set_flag(bool *to, const char *text, struct buf *why)
{
	int flag = read_flag(text);
	*to = flag == 1;
	if (flag >= 0)
		return true;
	buf_printf(why, "must be true or false, not \"%s\"", text);
	return false;
}

/* Its number among them, or -1. */
static int find_choice(const char *choices, const char *text)
{
	size_t len = strlen(text);
	for (int n = 0; choices; n++) {
		size_t end = strcspn(choices, "|");
		if (end == len && memcmp(choices, text, len) == 0)
			return n;
		choices = choices[end] ? choices + end + 1 : NULL;
	}
	return -1;
}

/* A choice that may be true or false, or something else, takes all words of a flag. */
static bool set_choice(int *to, const char *choices, const char *text, struct buf *why)
{
	static const char *const flags[] = {"false", "true"};
	int flag = read_flag(text), n = find_choice(choices, text);
	if (n < 0 && flag >= 0)
		n = find_choice(choices, flags[flag]);
	*to = n;
	if (n >= 0)
		return true;
	buf_puts(why, "must be one of ");
	for (const char *c = choices; *c; c++)
		buf_printf(why, *c == '|' ? ", " : "%c", *c);
	buf_printf(why, ", not \"%s\"", text);
	return false;
}

bool conf_value_controls(const char *text)
{
	while (*text && !iscntrl((unsigned char)*text))
		text++;
	return *text;
}

static bool set_text(const struct conf_row *row, char **to, const char *text, struct buf *why)
{
	int64_t len = (int64_t)strlen(text);
	if (len < row->low || len > row->high) {
		if (len == 0)
			buf_puts(why, "must not be empty");
		else
			buf_printf(why, "must have %" PRId64 " to %" PRId64 " characters", row->low,
				   row->high);
		return false;
	}
	if (conf_value_controls(text)) {
		buf_puts(why, "must not have control characters");
		return false;
	}
	free(*to);
	*to = mem_strdup(text);
	return true;
}

static bool set_amount(const struct conf_row *row, int64_t *to, const char *text, struct buf *why)
{
	int64_t value;
	if (!conf_amount_parse(row->type, text, &value, why))
		return false;
	if (value < row->low || value > row->high) {
		buf_puts(why, "must be ");
		conf_amount_print(row->type, row->low, why);
		buf_puts(why, " to ");
		conf_amount_print(row->type, row->high, why);
		buf_printf(why, ", not %s", text);
		return false;
	}
	*to = value;
	return true;
}

bool conf_value_set(const struct conf_row *row, void *place, const char *text, struct buf *why)
{
	switch (row->type) {
	case CONF_flag:
		return set_flag(place, text, why);
	case CONF_number:
	case CONF_duration:
	case CONF_size:
	case CONF_percent:
		return set_amount(row, place, text, why);
	case CONF_text:
		return set_text(row, place, text, why);
	case CONF_choice:
		return set_choice(place, row->choices, text, why);
	case CONF_rate:
		return conf_rate_parse(text, place, why);
	case CONF_feedback:
		return conf_feedback_parse(text, place, why);
	case CONF_list:
		break;
	}
	assert(0 && "a list is not set from one text");
	return false;
}

/* The default of a list is written as in a file: {"a", "b"}. */
static void default_list(struct conf_list *l, const char *text)
{
	for (const char *open = strchr(text, '"'); open; open = strchr(open, '"')) {
		const char *close = strchr(open + 1, '"');
		char *item = mem_strndup(open + 1, (size_t)(close - open - 1));
		conf_list_add(l, item);
		free(item);
		open = close + 1;
	}
}

void conf_value_default(const struct conf_row *row, void *place)
{
	struct buf why = {0};
	if (row->type == CONF_list) {
		conf_list_free(place);
		default_list(place, row->text);
		return;
	}
	bool fits = conf_value_set(row, place, row->text, &why);
	assert(fits); /* a fault of the table */
	(void)fits;
	buf_fini(&why);
}

void conf_list_add(struct conf_list *l, const char *item)
{
	if ((l->n & (l->n - 1)) == 0) /* it doubles */
		l->item = mem_realloc(l->item, (size_t)(l->n ? l->n * 2 : 1) * sizeof *l->item);
	l->item[l->n++] = mem_strdup(item);
}

bool conf_list_has(const struct conf_list *l, const char *item)
{
	for (int i = 0; i < l->n; i++)
		if (strcmp(l->item[i], item) == 0)
			return true;
	return false;
}

bool conf_list_same(const struct conf_list *a, const struct conf_list *b)
{
	if (a->n != b->n)
		return false;
	for (int i = 0; i < a->n; i++)
		if (strcmp(a->item[i], b->item[i]) != 0)
			return false;
	return true;
}

void conf_list_free(struct conf_list *l)
{
	for (int i = 0; i < l->n; i++)
		free(l->item[i]);
	free(l->item);
	*l = (struct conf_list){0};
}

void conf_value_free(const struct conf_row *row, void *place)
{
	if (row->type == CONF_list) {
		conf_list_free(place);
	} else if (row->type == CONF_text) {
		char **text = place;
		free(*text);
		*text = NULL;
	}
}

static size_t size_of(enum conf_type type)
{
	assert(type != CONF_text && type != CONF_list);
	switch (type) {
	case CONF_flag:
		return sizeof(CONF_TYPE_flag);
	case CONF_choice:
		return sizeof(CONF_TYPE_choice);
	case CONF_rate:
		return sizeof(CONF_TYPE_rate);
	case CONF_feedback:
		return sizeof(CONF_TYPE_feedback);
	default:
		return sizeof(int64_t);
	}
}

void conf_value_copy(const struct conf_row *row, void *to, const void *from)
{
	assert(to != from);
	conf_value_free(row, to);
	if (row->type == CONF_list) {
		const struct conf_list *l = from;
		for (int i = 0; i < l->n; i++)
			conf_list_add(to, l->item[i]);
	} else if (row->type == CONF_text) {
		*(char **)to = mem_strdup(*(char *const *)from);
	} else {
		memcpy(to, from, size_of(row->type));
	}
}

bool conf_value_keep_address(char **address)
{
	struct mailaddr a;
	const char *kept = mailaddr_kept(*address, &a);
	if (!kept)
		return false;
	free(*address);
	*address = mem_strdup(kept);
	return true;
}

void conf_value_keep_name(char **name)
{
	char ascii[NAME_KEY_DOMAIN];
	size_t len = strlen(*name);
	if (len > 1 && (*name)[len - 1] == '.')
		(*name)[len - 1] = '\0';
	if (utf8_is_ascii(*name) || !name_key_domain(*name, ascii))
		return;
	free(*name);
	*name = mem_strdup(ascii);
}

void conf_value_keep_domain(char **address)
{
	const char *domain = mailaddr_domain(*address);
	char ascii[NAME_KEY_DOMAIN];
	if (utf8_is_ascii(domain) || !name_key_domain(domain, ascii))
		return;
	char *kept = mem_printf("%.*s%s", (int)(domain - *address), *address, ascii);
	free(*address);
	*address = kept;
}

static void print_quoted(struct buf *to, const char *text)
{
	buf_puts(to, "\"");
	for (; *text; text++)
		buf_printf(to, strchr("\"\\", *text) ? "\\%c" : "%c", *text);
	buf_puts(to, "\"");
}

static void print_list(struct buf *to, const struct conf_list *l)
{
	buf_puts(to, "{");
	for (int i = 0; i < l->n; i++) {
		if (i > 0)
			buf_puts(to, ", ");
		print_quoted(to, l->item[i]);
	}
	buf_puts(to, "}");
}

static void print_choice(struct buf *to, const char *choices, int n)
{
	for (; n > 0; n--) {
		choices += strcspn(choices, "|");
		assert(*choices == '|');
		choices++;
	}
	buf_printf(to, "\"%.*s\"", (int)strcspn(choices, "|"), choices);
}

void conf_value_print(const struct conf_row *row, const void *place, struct buf *to)
{
	switch (row->type) {
	case CONF_flag:
		buf_puts(to, *(const bool *)place ? "true" : "false");
		break;
	case CONF_number:
	case CONF_duration:
	case CONF_size:
	case CONF_percent:
		conf_amount_print(row->type, *(const int64_t *)place, to);
		break;
	case CONF_text:
		print_quoted(to, *(char *const *)place);
		break;
	case CONF_list:
		print_list(to, place);
		break;
	case CONF_choice:
		print_choice(to, row->choices, *(const int *)place);
		break;
	case CONF_rate:
		conf_rate_print(place, to);
		break;
	case CONF_feedback:
		conf_feedback_print(place, to);
		break;
	}
}

void conf_value_print_default(const struct conf_row *row, struct buf *to)
{
	union {
		int64_t number;
		char *text;
		struct conf_list list;
		struct conf_rate rate;
		struct conf_feedback feedback;
	} place;
	memset(&place, 0, sizeof place);
	conf_value_default(row, &place);
	conf_value_print(row, &place, to);
	conf_value_free(row, &place);
}
