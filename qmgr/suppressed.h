/* suppressed.h - recipients that a host does not know, so that no more mail for them is taken.
 *
 *	refused with 5.1.1 --> suppressed_note() --> [ by address; by time ] --> suppressed_find() --> refused at RCPT
 *	mail is taken for one, or the operator says so --> suppressed_forget()
 *
 * At most SUPPRESSED_MAX, then the one that was refused longest ago goes. Each has a hint (base/hint.h). As
 * text, to be kept, each is a line: two times, the host or "-", and the address, which may have blanks.
 *
 * OWNERSHIP  Embedded in struct qmgr.
 * THREAD     qmgr; suppressed_read() before it starts.
 * ERRORS     None; a line that makes no sense is left out.
 */
#ifndef QMGR_SUPPRESSED_H
#define QMGR_SUPPRESSED_H

#include "base/buf.h"
#include "base/keyed_hash.h"
#include "base/list.h"

#include <stdbool.h>
#include <stdint.h>

enum { SUPPRESSED_MAX = 100000 };

struct suppressed_one {
	char *address;		   /* as name_key.h has it */
	char *host;		   /* who said so; "": the operator */
	int64_t since_ms, last_ms; /* wall clock: the first and the latest time that it was said */
	struct list by_time;
	UT_hash_handle hh;
};

struct suppressed {
	struct suppressed_one *table;
	struct list by_time; /* the one refused longest ago first */
	int n;
	bool changed; /* since it was saved: the caller's to clear */
};

void suppressed_init(struct suppressed *);
void suppressed_fini(struct suppressed *);

bool suppressed_note(struct suppressed *, const char *address, const char *host, int64_t now_ms);
/* True: it is new. */

bool suppressed_forget(struct suppressed *, const char *address); /* false: it was not there */
void suppressed_drop(struct suppressed *, struct suppressed_one *);

const struct suppressed_one *suppressed_find(const struct suppressed *, const char *address,
					     int64_t now_ms, int64_t keep_ms);
/* NULL: not there, or no longer for whoever asks, while others may be told for longer. It is good until the next call.
 * keep_ms 0: always NULL. */

void suppressed_age(struct suppressed *, int64_t now_ms, int64_t keep_ms);
/* Drop those that have been there for long enough. keep_ms 0: none, since they may be wanted again. */

void suppressed_write(const struct suppressed *, struct buf *to);
void suppressed_read(struct suppressed *, const char *text);

#endif
