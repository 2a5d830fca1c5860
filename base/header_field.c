/* SPDX-License-Identifier: ISC */
#include "base/header_field.h"

#include <string.h>
#include <strings.h>

size_t header_field_name(const char *line, size_t len)
{
	size_t n = 0;
	while (n < len && line[n] > 32 && line[n] < 127 && line[n] != ':')
		n++;
	size_t colon = n;
	while (colon < len && (line[colon] == ' ' || line[colon] == '\t'))
		colon++;
	return colon < len && line[colon] == ':' ? n : 0;
}

bool header_field_is(const char *name, size_t len, const char *wanted)
{
	return len == strlen(wanted) && strncasecmp(name, wanted, len) == 0;
}

size_t header_field_end(const char *text, size_t len)
{
	const char *p = text, *end = text + len, *lf;
	while ((lf = memchr(p, '\n', (size_t)(end - p))) != NULL) {
		p = lf + 1;
		if (p == end || (*p != ' ' && *p != '\t'))
			return (size_t)(p - text);
	}
	return len;
}
