/* older_copy.h - content of a message in another place than its envelope says.
 *
 * Compaction copies content before the envelope that names the new place, and removes the segment of the old one last. A log of which segments are
 * missing, as what another node's stream had of it, may have that envelope, and the old place only. What lies under an id is
 * the same wherever it lies.
 *
 * OWNERSHIP  Embedded; older_copies_fini(). Segments are the caller's, and stay.
 * THREAD     One.
 * ERRORS     What can't be read is not there.
 */
#ifndef SPOOL_OLDER_COPY_H
#define SPOOL_OLDER_COPY_H

#include "base/content.h"
#include "spool/segment.h"

struct older_copies {
	struct older_copy {
		uint64_t id;
		const struct segment *segment;
		uint64_t offset; /* of the bytes */
		uint32_t size, crc;
	} * copy; /* sorted by id */
	size_t n, cap;
	bool read; /* once, all segments, when it is first asked for any */
};

struct content *older_copy(struct older_copies *, struct segment *const *, size_t n, uint64_t id,
			   uint64_t size);
/* With its sum. NULL: there is no whole one. */

void older_copies_fini(struct older_copies *);

#endif
