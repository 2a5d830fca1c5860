/* kept_text.h - what a kept file is to say: where that can't be written, as on a full disk, it is tried again until it can.
 *
 * OWNERSHIP  Embedded; kept_text_fini() ends it.
 * THREAD     Main.
 * STATES     Kept; or waiting, with a timer.
 * ERRORS     Logged, once for each text.
 */
#ifndef CMD_WATCH_KEPT_TEXT_H
#define CMD_WATCH_KEPT_TEXT_H

#include "base/loop.h"
#include "cmd/watch/kept_file.h"

struct kept_text {
	const struct kept_file *file;
	char *spool;
	struct loop *loop;
	struct timer again;
	char *text; /* that is not in the file yet, or NULL */
};

void kept_text_init(struct kept_text *, const struct kept_file *, const char *spool, struct loop *);
void kept_text_write(struct kept_text *, const char *text);
void kept_text_end(struct kept_text *); /* before the relay ends: what waits is tried once more */
void kept_text_fini(struct kept_text *);

#endif
