/* suppress_command.h - the operator's view of recipients that hosts do not know, and what the operator may change.
 *
 *	main -- SUPPRESS_COMMAND --> qmgr -- the same, with rows --> the loop named in reply_to
 *	qmgr -- SUPPRESS_SAVE --> main, which writes it to disk: before the answer to what has changed it
 *
 * OWNERSHIP  Given away by posting. A command holds copies only; suppress_command_free().
 * THREAD     Whoever holds it.
 * ERRORS     off: none is added while the setting suppress is 0.
 */
#ifndef QMGR_SUPPRESS_COMMAND_H
#define QMGR_SUPPRESS_COMMAND_H

#include "base/loop.h"

#include <stdbool.h>
#include <stdint.h>

/* SUPPRESS_SAVE: a text_note, as suppressed_write() has it. */
enum suppress_note { SUPPRESS_COMMAND = NOTES_FROM(NOTES_OF_SUPPRESS), SUPPRESS_SAVE };

enum suppress_order { SUPPRESS_LIST, SUPPRESS_ADD, SUPPRESS_FORGET };

struct suppress_row {
	char *address, *host;		     /* host "": the operator has added it */
	int64_t since_ms, last_ms, until_ms; /* wall clock; until_ms 0: the setting is off */
};

struct suppress_command {
	struct note note;
	enum suppress_order op;
	char *address; /* of one; "@domain": of all there, not for ADD; NULL: all (LIST) */
	struct loop *reply_to;
	void *owner;
	/* filled by qmgr: */
	bool off;
	int found; /* listed, added or forgotten */
	struct suppress_row *row;
};

struct suppress_command *suppress_command_new(enum suppress_order, const char *address,
					      struct loop *reply_to, void *owner);
void suppress_command_free(struct suppress_command **);

struct qmgr;
void suppress_execute(struct qmgr *, struct suppress_command *);
/* Do it, and send it back. */

void suppress_save(struct qmgr *); /* what is new since the last time */

#endif
