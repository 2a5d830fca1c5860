/* mem.h - allocation that never fails: without memory the program ends.
 *
 * sluice is crash-only: nothing is lost by ending, and no path need survive half an allocation.
 *
 * OWNERSHIP  The caller frees with free().
 * THREAD     Any.
 * ERRORS     When the system has no memory left, a line on stderr and abort().
 */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stddef.h>
#include <string.h>

void *mem_alloc(size_t size);
void *mem_zalloc(size_t size);
void *mem_realloc(void *, size_t size);

void *mem_room(void *rows, size_t n, size_t size);
/* Memory for one more row of that size behind the n that there are: of an array that grows row by row, and whose memory
 * doubles each time when n is a power of two. */

char *mem_strdup(const char *); /* NULL stays NULL */
char *mem_strndup(const char *, size_t len);
char *mem_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The object that the pointer points to; the pointer is NULL from here on, and whoever has taken the object frees it. */
#define mem_take(pointer) ((__typeof__(*(pointer)))mem_take_pointer(pointer))

static inline void *mem_take_pointer(void *pointer)
{
	void *taken;
	memcpy(&taken, pointer, sizeof taken);
	memset(pointer, 0, sizeof taken);
	return taken;
}

#define mem_free(pointer) free(mem_take(pointer)) /* and the pointer is NULL */

void mem_free_secret(char *);
/* Overwrite a text, and free it. NULL is allowed. */

#endif
