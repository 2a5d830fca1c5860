/* author.h - which sections sign a message: those of the domain in From, if the client may use it.
 *
 *	From, each of them --> addresses --> one domain --> its sections --> may the client?
 *
 * THREAD     The passage's.
 * ERRORS     A sentence: there are sections for a domain in From, and all the same nobody signs.
 * SEE        RFC 5322 3.6.2; RFC 6376 5.1 (who should sign).
 */
#ifndef DKIM_AUTHOR_H
#define DKIM_AUTHOR_H

#include "stages/stages.h"

bool author_signs(const struct passage *, const struct conf_dkim *by[CONF_DKIM_MAX], int *n,
		  struct buf *why);
/* The draft is open. False: nobody, and why, which is empty where no domain is ours. */

#endif
