/* memdisk_core.h - files, folders and names of a memdisk, for its own files only. */
#ifndef TESTS_UNIT_SPOOL_MEMDISK_CORE_H
#define TESTS_UNIT_SPOOL_MEMDISK_CORE_H

#include "tests/unit/spool/blocks.h"
#include "tests/unit/spool/memdisk.h"

/* One write, or (bytes NULL) one new size, that is not stable. */
struct change {
	uint64_t at; /* or the size */
	size_t len;
	uint8_t *bytes;
};

struct name {
	char *text;
	struct inode *node;
};

struct names {
	struct name *of;
	size_t n, cap;
};

struct inode {
	int refs; /* names and descriptors */
	bool folder, locked;
	int64_t changed_ms;
	struct blocks seen, stable; /* a file's */
	struct change *change;
	size_t nchange, change_cap;
	struct names names, stable_names; /* a folder's */
};

/* A change of names that is not stable. from or to is NULL: the node was made, or removed. */
struct naming {
	struct inode *node, *from_folder, *to_folder;
	char *from, *to;
};

struct memdisk {
	struct inode *root;
	struct naming *naming;
	size_t nnaming, naming_cap;
	struct chance chance;
	int64_t room;
	bool frozen;
	int count[CALL_KINDS], fail_at[CALL_KINDS], fail_error[CALL_KINDS];
	bool fail_for_good[CALL_KINDS], failed;
	void (*before)(void *owner, enum memdisk_call);
	void *owner;
};

struct inode *inode_new(bool folder);
void inode_unref(struct inode *);
struct inode *inode_find(const struct inode *folder, const char *name); /* or NULL */
void inode_write(struct inode *, uint64_t at, const void *, size_t len);
void inode_resize(struct inode *, uint64_t size);
void inode_sync(struct inode *);
void inode_sync_fails(struct inode *, struct chance *);
void inode_cut(const struct inode *from, struct inode *to, struct chance *);

void naming_add(struct memdisk *, struct inode *, struct inode *from_folder, const char *from,
		struct inode *to_folder, const char *to); /* in effect, not stable */
void naming_sync(struct memdisk *, const struct inode *folder);
void naming_fini(struct memdisk *);
void names_fini(struct names *);
void names_copy(struct names *to, const struct names *from);
void names_apply(const struct naming *, struct names *from, struct names *to);

#endif
