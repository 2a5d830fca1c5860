/* text_note.h - a text as a note: what a thread knows and main is to keep over restarts.
 *
 * OWNERSHIP  The receiver's.
 * THREAD     Any.
 * ERRORS     None.
 */
#ifndef BASE_TEXT_NOTE_H
#define BASE_TEXT_NOTE_H

#include "base/buf.h"
#include "base/mailbox.h"

struct text_note {
	struct note note;
	char *text;
};

struct note *text_note_new(int type, struct buf *text); /* takes what is in the buffer */
void text_note_free(struct text_note **);

#endif
