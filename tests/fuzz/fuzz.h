/* fuzz.h - what the targets of this folder share: their one function, and files for those that read
 * files.
 *
 * An input that makes a target assert, or a sanitizer speak, is a finding. libFuzzer calls the
 * function with what it makes up (make fuzz), drive.c with the corpus and variations of it.
 *
 * THREAD     One.
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include "base/log.h"
#include "base/mem.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void fuzz_quiet(void)
{
	log_set_level((enum log_level)(LOG_LEVEL_ERROR + 1));
}

/* A file without a name: its descriptor, and a path under which it can be opened. */
struct fuzz_file {
	int fd;
	char path[32];
};

static inline void fuzz_file_write(struct fuzz_file *f, const void *bytes, size_t len)
{
	if (!f->path[0]) {
		f->fd = memfd_create("fuzz", MFD_CLOEXEC);
		snprintf(f->path, sizeof f->path, "/proc/self/fd/%d", f->fd);
	}
	bool good = ftruncate(f->fd, 0) == 0 && pwrite(f->fd, bytes, len, 0) == (ssize_t)len;
	if (!good)
		abort();
}

/* A folder of this process, removed with this one file in it when the process ends. */
struct fuzz_folder {
	char path[32], *file;
};

static inline struct fuzz_folder *fuzz_folder(void)
{
	static struct fuzz_folder folder;
	return &folder;
}

static inline void fuzz_folder_remove(void)
{
	unlink(fuzz_folder()->file);
	rmdir(fuzz_folder()->path);
	free(fuzz_folder()->file);
}

static inline const char *fuzz_folder_make(const char *file)
{
	struct fuzz_folder *f = fuzz_folder();
	snprintf(f->path, sizeof f->path, "/tmp/fuzz.XXXXXX");
	if (!mkdtemp(f->path))
		abort();
	f->file = mem_printf("%s/%s", f->path, file);
	atexit(fuzz_folder_remove);
	return f->file;
}

#endif
