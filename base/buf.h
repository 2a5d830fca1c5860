/* buf.h - a growing run of bytes, consumed from the front and filled at the back.
 *
 * The bytes in use are b->data + b->head, buf_len() of them. Space in front of the head is taken
 * back when room is needed.
 *
 * OWNERSHIP  Embedded; the memory belongs to the buf, until buf_fini() or buf_steal().
 * THREAD     Any; a buf belongs to one thread.
 * ERRORS     Running out of memory ends the program (crash-only: recovery is the only start).
 *            What a peer can size is bounded by the caller before it is appended.
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <assert.h>
#include <stdarg.h>
#include <stddef.h>

struct buf {
	char *data;
	size_t head, tail, cap;
};

static inline size_t buf_len(const struct buf *b)
{
	return b->tail - b->head;
}

static inline char *buf_data(const struct buf *b)
{
	return b->data + b->head;
}

void buf_init(struct buf *);
void buf_fini(struct buf *);

char *buf_grow(struct buf *, size_t len);
/* buf_reserve() where there is no room. */

/* Make room for len more bytes; returns where they go. Follow with buf_commit(). */
static inline char *buf_reserve(struct buf *b, size_t len)
{
	return b->cap - b->tail >= len ? b->data + b->tail : buf_grow(b, len);
}

/* The first len bytes of what was reserved are now in use. */
static inline void buf_commit(struct buf *b, size_t len)
{
	assert(b->cap - b->tail >= len);
	b->tail += len;
}

void buf_append(struct buf *, const void *data, size_t len);
void buf_puts(struct buf *, const char *text);
void buf_printf(struct buf *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_vprintf(struct buf *, const char *fmt, va_list);

void buf_consume(struct buf *, size_t len);
/* Drop len bytes from the front; an emptied buf starts again at its beginning. */

void buf_shorten(struct buf *, size_t len);
/* Drop len bytes from the end. */

void buf_clear(struct buf *);
/* Drop all bytes, keep the memory. */

void buf_release(struct buf *);
/* Give the memory back if the buf is empty (idle sessions hold none). */

void buf_wipe(struct buf *);
/* As buf_fini(), with all of its memory overwritten first: it held a secret. What it had outgrown
 * before was not: reserve what will be needed. */

char *buf_cstr(struct buf *);
/* The bytes in use as a string: a NUL is kept behind them, not counted. */

char *buf_steal(struct buf *, size_t *len);
/* Hand the bytes over as a malloc'd block, NUL behind them, and leave the buf empty. len may be
 * NULL. */

#endif
