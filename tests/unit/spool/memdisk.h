/* memdisk.h - a disk in memory that can be cut off from its power at any moment.
 *
 *	disk_write() ... --> what is seen --- disk_datasync(), disk_sync() ---> what is stable
 *	                          |                                                  |
 *	                          +---- memdisk_cut(): stable, and any part of ------+
 *	                                what was not synced yet  -->  another disk
 *
 * It stands in for all of spool/disk.c. Of what was not synced, a cut keeps or loses each sector
 * of 512 bytes for itself, whatever the order of the writes; some sectors in the middle, new bytes
 * before old ones, never others. Sizes of files change in the order in which they were changed,
 * up to some point; names of files one by one, in their order, each of them kept or lost. A rename
 * or a move is one change. A folder's sync makes the names in it stable, a file's sync never its
 * name. A sector that is stable and is not written to is never harmed.
 *
 * memdisk_fail() lets calls fail. When a sync fails, each sector that was to be written is stable or
 * forgotten for good, and what is seen of it may be the old bytes again: later syncs succeed all the
 * same. A write that fails may have written a part.
 *
 * OWNERSHIP  memdisk_free() frees files and folders; descriptors are closed by who opened them.
 * THREAD     One at a time.
 * ERRORS     errno as the system calls. Misuse asserts.
 */
#ifndef TESTS_UNIT_SPOOL_MEMDISK_H
#define TESTS_UNIT_SPOOL_MEMDISK_H

#include "spool/disk.h"
#include "tests/unit/spool/chance.h"

#include <stdbool.h>
#include <stddef.h>

enum memdisk_call {
	CALL_OPEN,
	CALL_CREATE, /* disk_open() with O_CREAT */
	CALL_FOLDER,
	CALL_LOCK,
	CALL_ALLOCATE,
	CALL_TRUNCATE,
	CALL_UNLINK,
	CALL_RENAME, /* and disk_move() */
	CALL_WRITE,
	CALL_READ,
	CALL_DATASYNC,
	CALL_SYNC,
	CALL_WRITEBACK,
	CALL_SIZE,
	CALL_FREE,
	CALL_EACH,
	CALL_KINDS
};

const char *memdisk_call_name(enum memdisk_call);

struct memdisk;

struct memdisk *memdisk_new(void); /* an empty root */
void memdisk_free(struct memdisk **);

void memdisk_use(struct memdisk *, void (*before)(void *owner, enum memdisk_call), void *owner);
/* From now on disk_*() works on this one. before, or NULL, is called at the beginning of each. */

struct memdisk *memdisk_cut(const struct memdisk *, struct chance *);
/* What is found after a power cut now. */

struct memdisk *memdisk_copy(const struct memdisk *);
/* What is seen now, on another disk, and stable there: a backup. */

void memdisk_freeze(struct memdisk *, bool);
/* The process is as good as dead: until the thaw calls fail and change nothing. What is not stable
 * stays so, for the machine lives. */

void memdisk_chance(struct memdisk *, uint64_t seed); /* for salts, and for what faults leave */

void memdisk_fail(struct memdisk *, enum memdisk_call, int nth, int error, bool for_good);
/* The nth call of this kind from now on (1: the next) fails; and all after it, when for_good.
 * nth 0: none. */
bool memdisk_failed(const struct memdisk *);		      /* it has ever come to that */
int memdisk_count(const struct memdisk *, enum memdisk_call); /* calls so far */

void memdisk_room(struct memdisk *, int64_t bytes); /* what disk_free_bytes() answers */

void memdisk_files(const struct memdisk *, void (*found)(void *owner, const char *name, int fd),
		   void *owner);
/* Each file that can be seen, with its path; fd for disk_read() and disk_size() within the call. */

/* For content.c, which reads what the spool has opened. */
ssize_t memdisk_pread(int fd, void *to, size_t len, off_t offset);
int memdisk_close(int fd);
bool memdisk_is_descriptor(int fd);

/* For what replica/ asks the system itself. */
bool memdisk_there(const char *path);
int memdisk_remove_folder(int folder, const char *name); /* ENOTEMPTY */

void memdisk_abandon(const struct memdisk *);
/* The process that had it has died: what was open there is open no more, what was locked is free. */

int memdisk_descriptors(void); /* that are open, of any disk */

#endif
