/* content_writer.h - content that is being written: memory at first, a file of the queue when it is large.
 *
 *	put, put, ... --> memory, up to SPOOL_CONTENT_INLINE_MAX bytes
 *	                  then a spool_file, in runs of CONTENT_WRITER_RUN bytes
 *
 * OWNERSHIP  Embedded; content_writer_fini() discards what was not taken.
 * THREAD     One at a time. The writes to a file block for as long as the page cache does.
 * ERRORS     A file that can't be made or written: error is its errno; what is put afterwards is
 *            dropped.
 * SEE        spool.h.
 */
#ifndef SPOOL_CONTENT_WRITER_H
#define SPOOL_CONTENT_WRITER_H

#include "base/buf.h"
#include "spool/spool.h"

enum { CONTENT_WRITER_RUN = 64 << 10 };

struct content_writer {
	struct spool *spool;
	uint64_t id;
	struct buf memory; /* all of it, or what is not yet in the file */
	struct spool_file *file;
	int error;
	bool spills; /* memory is short: to a file at once */
};

void content_writer_init(struct content_writer *, struct spool *, uint64_t id);
void content_writer_fini(struct content_writer *);

void content_writer_put(struct content_writer *, const char *bytes, size_t len);

void content_writer_finish(struct content_writer *); /* all has been put */

uint64_t content_writer_take(struct content_writer *, struct content **, struct spool_file **);
/* Hand over what was written, as one or the other; returns its size. Not after an error. */

#endif
