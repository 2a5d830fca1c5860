/* SPDX-License-Identifier: ISC */
#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { CACHED_MAX = 1024 }; /* bytes, as in glibc */

static void *require_memory(void *p)
{
	if (!p) {
		fputs("sluice: out of memory\n", stderr);
		abort();
	}
	return p;
}

void *mem_alloc(size_t size)
{
	return require_memory(malloc(size ? size : 1));
}

/* glibc's calloc() passes by the thread's own cache of small blocks until 2.41, and knows of large ones which pages are fresh. */
void *mem_zalloc(size_t size)
{
	if (size > CACHED_MAX)
		return require_memory(calloc(1, size));
	return memset(mem_alloc(size), 0, size);
}

void *mem_realloc(void *p, size_t size)
{
	return require_memory(realloc(p, size ? size : 1));
}

void *mem_room(void *rows, size_t n, size_t size)
{
	bool full = (n & (n - 1)) == 0; /* 0, 1, 2, 4, 8 ... */
	return full ? mem_realloc(rows, (n > 0 ? 2 * n : 1) * size) : rows;
}

char *mem_strdup(const char *s)
{
	return s ? require_memory(strdup(s)) : NULL;
}

char *mem_strndup(const char *s, size_t len)
{
	return require_memory(strndup(s, len));
}

char *mem_printf(const char *fmt, ...)
{
	char *s;
	va_list args;
	va_start(args, fmt);
	int len = vasprintf(&s, fmt, args);
	va_end(args);
	return require_memory(len < 0 ? NULL : s);
}

void mem_free_secret(char *s)
{
	if (s)
		explicit_bzero(s, strlen(s));
	free(s);
}
