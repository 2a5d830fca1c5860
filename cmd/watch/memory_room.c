/* SPDX-License-Identifier: ISC */
#include "cmd/watch/memory_room.h"

#include "base/file_io.h"
#include "base/mem.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { GROUPS_MAX = 64 * 1024, NUMBER_MAX = 64 };

static void take_less(struct memory_room *r, int64_t bytes, const char *whose)
{
	if (bytes < r->bytes)
		*r = (struct memory_room){bytes, whose};
}

static bool read_small(const char *path, size_t most, struct buf *to)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool good = fd >= 0 && file_read(fd, most, to);
	file_close(fd);
	return good;
}

/* "max" is no number, and no limit. */
static void look_at_group(struct memory_room *r, const char *folder, const char *name)
{
	struct buf text = {0};
	char *path = mem_printf("%s/%s", folder, name), *end;
	if (read_small(path, NUMBER_MAX, &text)) {
		long long bytes = strtoll(buf_cstr(&text), &end, 10);
		if (end > buf_cstr(&text) && bytes > 0)
			take_less(r, bytes, "its cgroup");
	}
	buf_fini(&text);
	free(path);
}

/* And all that it lies in. A container may not see some of them, but has its own at the top. */
static void climb_groups(struct memory_room *r, const char *mounted, const char *group,
			 const char *name)
{
	char *folder = mem_printf("%s%s", mounted, group), *slash;
	size_t top = strlen(mounted);
	do {
		look_at_group(r, folder, name);
		slash = strrchr(folder + top, '/');
		if (slash)
			*slash = '\0';
	} while (slash);
	free(folder);
}

/* "0::GROUP" of version 2, "4:memory:GROUP" or "4:cpu,memory:GROUP" of version 1. */
static void look_at_line(struct memory_room *r, const char *line, const char *mounted)
{
	const char *kinds = strchr(line, ':');
	const char *group = kinds ? strchr(kinds + 1, ':') : NULL;
	if (!group)
		return;
	char *words = mem_printf(",%.*s,", (int)(group - kinds - 1), kinds + 1);
	char *memory = mem_printf("%s/memory", mounted);
	if (strncmp(line, "0::", 3) == 0)
		climb_groups(r, mounted, group + 1, "memory.max");
	else if (strstr(words, ",memory,"))
		climb_groups(r, memory, group + 1, "memory.limit_in_bytes");
	free(memory);
	free(words);
}

void memory_room_of_groups(struct memory_room *r, const char *groups, const char *mounted)
{
	char *all = mem_strdup(groups), *next = NULL;
	for (char *line = strtok_r(all, "\n", &next); line; line = strtok_r(NULL, "\n", &next))
		look_at_line(r, line, mounted);
	free(all);
}

static void look_at_own(struct memory_room *r, int resource, const char *whose)
{
	struct rlimit limit;
	if (getrlimit(resource, &limit) == 0 && limit.rlim_cur < (rlim_t)r->bytes)
		take_less(r, (int64_t)limit.rlim_cur, whose);
}

struct memory_room memory_room_find(void)
{
	struct memory_room r = {INT64_MAX, "the machine"};
	struct buf groups = {0};
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
	if (pages > 0 && page > 0)
		r.bytes = (int64_t)pages * page;
	look_at_own(&r, RLIMIT_AS, "ulimit -v, LimitAS");
	look_at_own(&r, RLIMIT_DATA, "ulimit -d, LimitDATA");
	if (read_small("/proc/self/cgroup", GROUPS_MAX, &groups))
		memory_room_of_groups(&r, buf_cstr(&groups), "/sys/fs/cgroup");
	buf_fini(&groups);
	return r;
}

bool memory_room_lacks(const struct memory_room *r, const struct conf *conf, struct buf *says)
{
	int64_t promised = conf->content_memory_limit + conf->session_memory_limit;
	if (promised <= r->bytes)
		return false;
	buf_printf(says,
		   "content_memory_limit and session_memory_limit let mail have %lld MB of memory "
		   "together, and all of this process may have %lld MB (%s)",
		   (long long)(promised >> 20), (long long)(r->bytes >> 20), r->whose);
	return true;
}
