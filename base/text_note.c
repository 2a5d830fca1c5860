/* SPDX-License-Identifier: ISC */
#include "base/text_note.h"

#include <stdlib.h>

struct note *text_note_new(int type, struct buf *text)
{
	struct text_note *n = mailbox_note(sizeof *n, type);
	n->text = buf_steal(text, NULL);
	return &n->note;
}

void text_note_free(struct text_note **np)
{
	free((*np)->text);
	free(*np);
	*np = NULL;
}
