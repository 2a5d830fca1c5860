/* SPDX-License-Identifier: ISC */
/* corpus_spool_record FOLDER - segments that random histories leave, for fuzz_spool_record.
 *
 * Each is written as it is, without the zeros at its end, and its records once more in the form of
 * which the fuzzer makes segments of its own, so that a changed byte does not spoil every CRC. */
#include "base/mem.h"
#include "spool/scan.h"
#include "tests/unit/spool/edges.h"
#include "tests/unit/spool/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HISTORIES = 12, STEPS = 50 };

struct place_of {
	const char *folder;
	int history;
};

static void save(const char *folder, int history, const char *name, const char *form,
		 const struct buf *bytes)
{
	char *path = mem_printf("%s/%d-%s.%s", folder, history, name, form);
	FILE *f = fopen(path, "wb");
	if (!f || fwrite(buf_data(bytes), 1, buf_len(bytes), f) != buf_len(bytes) ||
	    fclose(f) != 0) {
		perror(path);
		exit(1);
	}
	free(path);
}

/* One piece as fuzz_spool_record.c reads it: type, id and flags in a byte, length, payload. */
static void add_piece(struct buf *to, const struct scan *scan)
{
	uint32_t length = scan->record.length;
	if (length > 255)
		return;
	uint8_t head[2] = {(uint8_t)(64 | (scan->record.flags & 1) << 7 |
				     (scan->record.id & 3) << 3 | (scan->record.type & 7)),
			   (uint8_t)length};
	buf_append(to, head, sizeof head);
	buf_append(to, scan->payload, length);
}

static void save_segment(void *owner, const char *path, int fd)
{
	const struct place_of *place = owner;
	const char *name = strrchr(path, '/') + 1, *end = strstr(name, ".seg");
	uint64_t size;
	int64_t changed_ms;
	struct segment_head head;
	struct buf bytes, pieces;
	if (!end || disk_size(fd, &size, &changed_ms) != 0)
		return;
	buf_init(&bytes);
	buf_init(&pieces);
	uint8_t *to = (uint8_t *)buf_reserve(&bytes, size);
	size_t n = (size_t)disk_read(fd, to, size, 0);
	if (n > SEGMENT_HEAD && segment_head_get(to, &head)) {
		struct scan scan;
		scan_init(&scan, fd, segment_head_seed(&head), size);
		while (scan_next(&scan) == SCAN_RECORD)
			add_piece(&pieces, &scan);
		buf_commit(&bytes, scan.from);
		save(place->folder, place->history, name, "whole", &bytes);
		save(place->folder, place->history, name, "pieces", &pieces);
		scan_fini(&scan);
	}
	buf_fini(&bytes);
	buf_fini(&pieces);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	for (int i = 0; i < HISTORIES; i++) {
		struct world w;
		world_seed = (uint64_t)i;
		edges_begin();
		edges_stepped(false);
		world_init(&w, memdisk_new(), (uint64_t)i << 8);
		world_open(&w);
		for (int n = 0; n < STEPS; n++)
			world_step(&w);
		world_kill(&w);
		memdisk_files(w.disk, save_segment, &(struct place_of){argv[1], i});
		world_fini(&w);
	}
	return 0;
}
