/* verdicts.h - the table of verdicts inside a payload, and the cursor that reads payloads.
 *
 * The recipients of one transaction share one verdict, in memory and on disk: each is written once
 * and referred to by its number.
 *
 * OWNERSHIP  verdicts_get() gives an array of references, returned with verdicts_free().
 * THREAD     Any.
 * ERRORS     A cursor that was asked for more than there is goes bad and yields zeros.
 */
#ifndef SPOOL_VERDICTS_H
#define SPOOL_VERDICTS_H

#include "base/buf.h"
#include "base/verdict.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { VERDICTS_RECENT = 8 };

struct verdicts {
	struct buf *to;	 /* NULL on the second walk */
	size_t count_at; /* where the count is to be written, from the front of the buf */
	uint32_t n;
	const struct verdict *recent[VERDICTS_RECENT]; /* number i lies at i modulo this */
};

void verdicts_begin(struct verdicts *, struct buf *);
uint32_t verdicts_add(struct verdicts *, const struct verdict *);
/* Its number. Written again when it is none of the last few: a message has few at a time. */
void verdicts_end(struct verdicts *);
void verdicts_again(struct verdicts *); /* the same walk once more, only for the numbers */

void verdicts_put_number(struct buf *, uint32_t);
void verdicts_put_text(struct buf *, const char *);

struct cursor {
	const uint8_t *at;
	size_t left;
	bool bad;
};

uint64_t cursor_number(struct cursor *, int bytes);
char *cursor_text(struct cursor *); /* malloc'd; NULL when bad */

struct verdict **verdicts_get(struct cursor *, uint32_t *n); /* NULL when bad */
void verdicts_free(struct verdict **, uint32_t n);	     /* NULL is allowed */

#endif
