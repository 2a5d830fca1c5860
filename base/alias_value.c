/* SPDX-License-Identifier: ISC */
#include "base/alias_value.h"

#include "base/conf_value.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

#define BLANKS " \t\r\n"

const char *alias_value_parse(const char *value, const char *key, struct conf_list *to,
			      struct buf *why)
{
	int n = 0;
	for (const char *at = value; *at; at += *at == ',') {
		at += strspn(at, BLANKS);
		size_t whole = strcspn(at, ","), len = whole;
		while (len > 0 && strchr(BLANKS, at[len - 1]))
			len--;
		char *one = mem_strndup(at, len);
		bool good = len == 0 || (strchr(one, '@') && !strpbrk(one, BLANKS));
		if (!good)
			buf_printf(why, "\"%s\" is not an address", one);
		else if (len > 0 && to)
			conf_list_add(to, one);
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
