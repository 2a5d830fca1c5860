/* conf_note.h - other settings for a thread, as a note.
 *
 * OWNERSHIP  The note has a reference of its own, which the receiver takes with it.
 * THREAD     Any.
 * ERRORS     None.
 */
#ifndef BASE_CONF_NOTE_H
#define BASE_CONF_NOTE_H

#include "base/conf.h"
#include "base/loop.h"

void conf_note_post(struct loop *to, int type, struct conf *);

struct conf *conf_note_take(struct note *);
/* The reference; the note is freed. */

void conf_note_use(struct note *, struct conf **);
/* The same, in the place of another one. */

#endif
