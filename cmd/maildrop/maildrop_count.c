/* SPDX-License-Identifier: ISC */
#include "cmd/maildrop/maildrop_count.h"

#include "base/date.h"
#include "base/mailaddr.h"
#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINE = 2048 }; /* longer ones hold no address */

/* One file while its envelope is read. */
struct reading {
	struct shape *shape;
	int64_t age_ms;
	bool wanted; /* by its sender; it has no flow yet */
};

static void count_address(struct reading *r, const char *address)
{
	char domain[LINE];
	snprintf(domain, sizeof domain, "%s", mailaddr_domain(address));
	shape_add_name(r->shape, domain, r->age_ms, 1);
}

/* False: the envelope has ended. */
static bool take_line(struct reading *r, char *line)
{
	size_t len = strcspn(line, "\n");
	bool whole = line[len] == '\n';
	line[len] = '\0';
	if (whole && strncmp(line, "from ", 5) == 0) {
		r->wanted = r->shape->nflow == 0 && shape_wants_sender(r->shape, line + 5);
		if (r->wanted && r->shape->senders)
			count_address(r, line + 5);
	} else if (whole && strncmp(line, "to ", 3) == 0 && r->wanted && !r->shape->senders) {
		count_address(r, line + 3);
	}
	return len > 0;
}

static void read_envelope(FILE *in, struct reading *r)
{
	char line[LINE];
	bool ok = fgets(line, sizeof line, in) && strncmp(line, "sluice maildrop 1 ", 18) == 0;
	while (ok && fgets(line, sizeof line, in))
		ok = take_line(r, line);
}

static void count_file(int folder, const char *name, struct shape *shape)
{
	struct stat st;
	int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return;
	FILE *in = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? fdopen(fd, "r") : NULL;
	if (!in) {
		close(fd);
		return;
	}
	int64_t age_ms = date_ms() - (int64_t)st.st_mtim.tv_sec * 1000;
	struct reading r = {.shape = shape, .age_ms = age_ms > 0 ? age_ms : 0};
	read_envelope(in, &r);
	fclose(in);
}

static bool count_folder(const char *spool, const char *name, struct shape *shape)
{
	char *path = mem_printf("%s/%s", spool, name);
	DIR *d = opendir(path);
	free(path);
	if (!d)
		return false;
	for (const struct dirent *e; (e = readdir(d));)
		if (e->d_name[0] != '.')
			count_file(dirfd(d), e->d_name, shape);
	closedir(d);
	return true;
}

bool maildrop_count(const char *spool, struct shape *shape)
{
	if (!count_folder(spool, "maildrop", shape))
		return false;
	count_folder(spool, "taken", shape);
	return true;
}
