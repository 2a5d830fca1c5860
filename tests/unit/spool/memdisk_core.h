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
	struct node *node;
};

struct names {
	struct name *of;
	size_t n, cap;
};

struct node {
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
	struct node *node, *from_folder, *to_folder;
	char *from, *to;
};

struct memdisk {
	struct node *root;
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

struct node *node_new(bool folder);
void node_unref(struct node *);
struct node *node_find(const struct node *folder, const char *name); /* or NULL */
void node_write(struct node *, uint64_t at, const void *, size_t len);
void node_resize(struct node *, uint64_t size);
void node_sync(struct node *);
void node_sync_fails(struct node *, struct chance *);
void node_cut(const struct node *from, struct node *to, struct chance *);

void naming_add(struct memdisk *, struct node *, struct node *from_folder, const char *from,
		struct node *to_folder, const char *to); /* in effect, not stable */
void naming_sync(struct memdisk *, const struct node *folder);
void naming_fini(struct memdisk *);
void names_fini(struct names *);
void names_copy(struct names *to, const struct names *from);
void names_apply(const struct naming *, struct names *from, struct names *to);

#endif
