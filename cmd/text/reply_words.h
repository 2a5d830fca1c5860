/* reply_words.h - the reply of a host, or what went wrong without one, as words.
 *
 *	mx.dest.test[192.0.2.7]:25 said 451 4.2.1 Try later
 *	mx.dest.test[192.0.2.7]:25 refused the connection
 *	connect to mx.dest.test[192.0.2.7]:25: Connection timed out
 *
 * The enhanced code is the host's own where it has given one, else that of the verdict. Controls are
 * replaced, so that it stays on its line.
 *
 * THREAD     Any.
 * ERRORS     None.
 */
#ifndef CMD_TEXT_REPLY_WORDS_H
#define CMD_TEXT_REPLY_WORDS_H

#include "base/buf.h"
#include "base/verdict.h"

#include <stdbool.h>

void reply_words_put(struct buf *, const struct verdict *, bool quoted);
/* quoted: the reply stands in quotes, as within a sentence. */

#endif
