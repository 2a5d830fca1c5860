/* SPDX-License-Identifier: ISC */
#include "base/alias_value.h"

#include "base/conf_value.h"
#include "base/mailaddr.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

#define BLANKS " \t\r\n"

/* Up to the next comma that stands in no quotes. */
static size_t member_length(const char *text)
{
	bool quoted = false;
	size_t len = 0;
	for (; text[len] && (quoted || text[len] != ','); len++)
		if (text[len] == '\\' && text[len + 1])
			len++;
		else if (text[len] == '"')
			quoted = !quoted;
	return len;
}

const char *alias_value_parse(const char *value, const char *key, struct conf_list *to,
			      struct buf *why)
{
	int n = 0;
	for (const char *at = value; *at; at += *at == ',') {
		at += strspn(at, BLANKS);
		size_t whole = member_length(at), len = whole;
		while (len > 0 && strchr(BLANKS, at[len - 1]))
			len--;
		char *one = mem_strndup(at, len);
		struct mailaddr a;
		const char *kept = mailaddr_kept(one, &a);
		bool good = len == 0 || kept;
		if (!good)
			buf_printf(why, "\"%s\" is not an address", one);
		else if (kept && to)
			conf_list_add(to, kept);
		n += len > 0;
		free(one);
		if (!good)
			return at;
		at += whole;
	}
	if (n == 0)
		buf_printf(why, "alias \"%s\" stands for nothing", key);
	return n == 0 ? value : NULL;
}
