/* spool_file.h - the content of a large message, as the spool's thread sees it.
 *
 * THREAD     spool, after it has been given away with SPOOL_STORE.
 * SEE        spool.h for the part of whoever writes it.
 */
#ifndef SPOOL_SPOOL_FILE_H
#define SPOOL_SPOOL_FILE_H

#include "spool/spool.h"

void spool_file_sum(const struct spool_file *, struct envelope *);
/* Say in the envelope what all that was written sums up to. */

int spool_file_sync(struct spool_file *); /* its data; its name is synced with the folder */
struct content *spool_file_content(struct spool_file **);
/* The content in the file, which is complete; frees the rest. */

void spool_file_leave(
	struct spool_file *
		*); /* as it is, under its name: somebody else's record has it. NULL: there is none */

#endif
