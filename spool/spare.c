/* SPDX-License-Identifier: ISC */
#include "spool/spare.h"

#include "spool/disk.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

static const char *name_of(unsigned i, char name[SPARE_NAME])
{
	snprintf(name, SPARE_NAME, "spare%u", i);
	return name;
}

bool spare_name(const char *name)
{
	char ours[SPARE_NAME];
	for (unsigned i = 0; i < SPARES_MAX; i++)
		if (strcmp(name, name_of(i, ours)) == 0)
			return true;
	return false;
}

static bool is_usable(const struct spares *s, const char *name)
{
	uint64_t size = 0;
	int64_t changed_ms;
	int fd = disk_open(s->folder, name, O_RDONLY);
	if (fd < 0)
		return false;
	bool ok = disk_size(fd, &size, &changed_ms) == 0 && size == s->size;
	disk_close(fd);
	return ok;
}

void spares_find(struct spares *s, int folder, uint64_t size)
{
	char name[SPARE_NAME];
	*s = (struct spares){.folder = folder, .size = size};
	while (s->n < SPARES_MAX && is_usable(s, name_of(s->n, name)))
		s->n++;
	for (unsigned i = s->n; i < SPARES_MAX; i++)
		disk_unlink(folder, name_of(i, name));
}

bool spares_keep(struct spares *s, const struct segment *g)
{
	char from[SEGMENT_NAME], to[SPARE_NAME];
	assert(g->live == 0 && s->n <= SPARES_MAX);
	/* Whoever reads it still reads what it was. */
	if (s->unwanted || s->n == SPARES_MAX || g->size != s->size || !content_file_alone(g->file))
		return false;
	if (disk_rename(s->folder, segment_name(g->head.seq, from), name_of(s->n, to)) != 0 ||
	    disk_sync(s->folder) != 0)
		return false;
	s->n++;
	return true;
}

const char *spares_claim(struct spares *s, char name[SPARE_NAME])
{
	assert(s->n <= SPARES_MAX);
	return s->n > 0 ? name_of(--s->n, name) : NULL;
}

struct segment *spares_take(struct spares *s, uint64_t seq, uint32_t lane, bool first)
{
	char name[SPARE_NAME];
	if (!spares_claim(s, name))
		return NULL;
	return segment_adopt(s->folder, name, seq, lane, first);
}

void spares_drop(struct spares *s)
{
	char name[SPARE_NAME];
	while (s->n > 0)
		disk_unlink(s->folder, name_of(--s->n, name));
}
