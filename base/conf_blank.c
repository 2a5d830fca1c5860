/* SPDX-License-Identifier: ISC */
#include "base/conf_blank.h"

#include <ctype.h>
#include <string.h>

static const char blanks[] = " \t\r\n";

static char *find_line(char *text, int line)
{
	for (; line > 1 && text; line--) {
		text = strchr(text, '\n');
		text += text != NULL;
	}
	return text;
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-';
}

/* Behind a text in quotes, which begins here. */
static char *skip_quoted(char *at)
{
	const char quote = *at++;
	while (*at && *at != quote)
		at += at[0] == '\\' && at[1] ? 2 : 1;
	return at + (*at != '\0');
}

/* Behind the brace that closes this one. */
static char *skip_braces(char *at)
{
	int depth = 0;
	do {
		if (*at == '"' || *at == '\'') {
			at = skip_quoted(at);
			continue;
		}
		depth += (*at == '{') - (*at == '}');
		at += *at != '\0';
	} while (*at && depth > 0);
	return at;
}

/* Outside of quotes: a title may be such a word. */
static char *find_name(char *at, const char *name)
{
	size_t len = strlen(name);
	bool begins = true;
	while (*at && *at != '\n') {
		if (begins && strncmp(at, name, len) == 0 && !is_word(at[len]))
			return at;
		begins = !is_word(*at);
		at = *at == '"' || *at == '\'' ? skip_quoted(at) : at + 1;
	}
	return NULL;
}

static char *skip_one(char *at)
{
	if (*at == '{')
		return skip_braces(at);
	if (*at == '"' || *at == '\'')
		return skip_quoted(at);
	return at + strcspn(at, " \t\r\n{},");
}

static char *skip_value(char *at)
{
	at += strspn(at, blanks);
	if (*at == '=' || strncmp(at, "+=", 2) == 0) {
		at += strspn(at, "+=");
		return skip_one(at + strspn(at, blanks));
	}
	if (*at == '"') { /* a section's title */
		at = skip_quoted(at);
		at += strspn(at, blanks);
	}
	return *at == '{' ? skip_braces(at) : at;
}

bool conf_blank(char *text, int line, const char *name)
{
	char *at = find_line(text, line);
	char *from = at ? find_name(at, name) : NULL;
	if (!from)
		return false;
	const char *end = skip_value(from + strlen(name));
	bool any = false;
	for (; from < end; from++) {
		any |= !strchr(blanks, *from);
		if (*from != '\n')
			*from = ' ';
	}
	return any;
}
