/* SPDX-License-Identifier: ISC */
#include "smtpd/dovecot_line.h"

#include <stdlib.h>
#include <string.h>

void dovecot_line_init(struct dovecot_line *l, char *line)
{
	l->rest = line;
}

/* The character that \001 and this one stand for. A NUL would end the word for us alone. */
static char meant_char(char c)
{
	switch (c) {
	case '0':
		return '?';
	case '1':
		return '\001';
	case 't':
		return '\t';
	case 'r':
		return '\r';
	case 'n':
		return '\n';
	default:
		return c;
	}
}

static void unescape_word(char *word)
{
	char *to = word;
	for (const char *from = word; *from; from++)
		*to++ = *from == '\001' && from[1] ? meant_char(*++from) : *from;
	*to = '\0';
}

char *dovecot_line_next(struct dovecot_line *l, bool *more)
{
	char *word = l->rest;
	size_t len = strcspn(word, "\t");
	if (more)
		*more = *word != '\0';
	l->rest = word + len + (word[len] == '\t');
	word[len] = '\0';
	unescape_word(word);
	return word;
}

bool dovecot_line_number(struct dovecot_line *l, uint32_t *number)
{
	const char *word = dovecot_line_next(l, NULL);
	char *end;
	unsigned long n = strtoul(word, &end, 10);
	if (*word < '0' || *word > '9' || *end || n > UINT32_MAX)
		return false;
	*number = (uint32_t)n;
	return true;
}

const char *dovecot_line_value(const char *word, const char *key)
{
	size_t len = strlen(key);
	if (strncmp(word, key, len) != 0 || (word[len] && word[len] != '='))
		return NULL;
	return word[len] ? word + len + 1 : word + len;
}
