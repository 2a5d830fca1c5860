/* SPDX-License-Identifier: ISC */
#include "base/words.h"

#include "base/mem.h"

#include <string.h>
#include <strings.h>

#define BLANKS " \t\r\n"

const char *words_rest(const char **text)
{
	*text += strspn(*text, BLANKS);
	return *text;
}

const char *words_next(const char **text, size_t *len)
{
	const char *word = words_rest(text);
	*len = strcspn(word, BLANKS);
	*text = word + *len;
	return word;
}

char *words_line(const char **text)
{
	const char *line = *text;
	size_t len = strcspn(line, "\n");
	*text = line + len + (line[len] == '\n');
	return *line ? mem_strndup(line, len) : NULL;
}

bool words_is(const char *word, size_t len, const char *wanted)
{
	return strlen(wanted) == len && strncasecmp(word, wanted, len) == 0;
}

static size_t count_digits(const char *text, size_t most)
{
	size_t n = strspn(text, "0123456789");
	return n <= most ? n : 0;
}

bool words_dsn(const char *word, size_t len, const char *classes)
{
	if (len < 5 || !strchr(classes, word[0]) || word[1] != '.')
		return false;
	size_t subject = count_digits(word + 2, 3);
	if (subject == 0 || word[2 + subject] != '.')
		return false;
	size_t detail = count_digits(word + 3 + subject, 3);
	return detail > 0 && 3 + subject + detail == len;
}

const char *words_unprintable(const char *text)
{
	for (; *text; text++)
		if ((*text < 32 || *text > 126) && !strchr(BLANKS, *text))
			return text;
	return NULL;
}
