/* content.h - the bytes of one message, as they came: CRLF lines, the last perhaps without an end, not
 * dot-stuffed.
 *
 * They lie in memory, or in a region of a file (a log segment, or a file of their own).
 * They never change once the content is made.
 *
 * OWNERSHIP  Counted, content and file alike; each reference is returned with its unref.
 * THREAD     Any; the counts are atomic and content_read() uses pread.
 * ERRORS     content_read() returns -1 with errno when the disk fails.
 */
#ifndef BASE_CONTENT_H
#define BASE_CONTENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct content_file {
	atomic_int refs;
	int fd;		     /* closed with the last reference */
	atomic_bool damaged; /* who reads it to its end has found that it is not what was written */
};

struct content {
	atomic_int refs;
	uint64_t size;		   /* bytes */
	const char *memory;	   /* size bytes, malloc'd; or NULL: they are in the file */
	struct content_file *file; /* or NULL */
	uint64_t offset;	   /* where in the file they begin */
	bool summed;		   /* sum is known: whoever reads it to its end compares */
	uint32_t sum;		   /* CRC32C of the bytes */
};

struct content_file *content_file_new(int fd); /* takes the descriptor */
struct content_file *content_file_ref(struct content_file *);
void content_file_unref(struct content_file *); /* NULL is allowed */
bool content_file_alone(struct content_file *); /* the caller's reference is the only one */

struct content *content_in_memory(char *bytes, uint64_t size);
/* Takes bytes, a malloc'd block. */

struct content *content_in_file(struct content_file *, uint64_t offset, uint64_t size);
/* Takes a reference of its own on the file. */

struct content *content_ref(struct content *);
void content_unref(struct content *); /* NULL is allowed */

ssize_t content_read(const struct content *, uint64_t offset, void *to, size_t len);
/* Up to len bytes from offset; 0 at the end; -1 and errno on an error. Less than asked for only at
 * the end. */

bool content_intact(const struct content *, uint32_t *sum, uint64_t offset, const void *,
		    size_t len);
/* For who reads it from its beginning, piece by piece: len bytes at offset have been read, *sum was 0
 * at first. False: with this piece it is at its end, and is not what was written; errno is EBADMSG,
 * and the spool puts the message aside when it gets it back. */

int64_t content_memory_bytes(void);
/* Bytes that all contents together hold in memory. */

#endif
