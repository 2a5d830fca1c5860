/* trace_words.h - one event of the log in words.
 *
 *	sent id=0A to=b@c.d relay=mx[192.0.2.1]:25 ...  -->  delivered to <b@c.d> by mx[192.0.2.1]:25
 *
 * THREAD     Main.
 * ERRORS     An event that has no words of its own is told by its name and its keys.
 * SEE        sluice(8), "LOG".
 */
#ifndef CMD_LOGS_TRACE_WORDS_H
#define CMD_LOGS_TRACE_WORDS_H

#include "base/log_line.h"

bool trace_words(const struct log_line *, struct buf *to);
/* False: the line says nothing that others don't. */

void trace_words_value(const struct log_field *, struct buf *to);
/* The value, with nothing in it that a terminal obeys. */

#endif
