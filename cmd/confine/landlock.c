/* SPDX-License-Identifier: ISC */
#include "cmd/confine/landlock.h"

#include "base/file_io.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Of versions that may be later than the headers we are compiled with. */
#define ACCESS_TRUNCATE (UINT64_C(1) << 14)
#define ACCESS_IOCTL_DEV (UINT64_C(1) << 15)
#define SCOPE_ABSTRACT_SOCKET (UINT64_C(1) << 0)
#define SCOPE_SIGNAL (UINT64_C(1) << 1)

struct attributes {
	uint64_t files, network, scoped;
};

enum { ABI_TRUNCATE = 3, ABI_NETWORK = 4, ABI_IOCTL = 5, ABI_SCOPE = 6 };

#define FILES_OF_ABI_2 (((uint64_t)LANDLOCK_ACCESS_FS_REFER << 1) - 1)
#define READING ((uint64_t)(LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR))
#define WRITING                                                                                    \
	((uint64_t)(LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG) | ACCESS_TRUNCATE)
#define KEEPING                                                                                    \
	((uint64_t)(LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |               \
		    LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_SOCK |                   \
		    LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_SYM |                   \
		    LANDLOCK_ACCESS_FS_REFER))
#define OF_A_FILE                                                                                  \
	((uint64_t)(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE |                   \
		    LANDLOCK_ACCESS_FS_READ_FILE) |                                                \
	 ACCESS_TRUNCATE)

static const uint64_t rights[] = {
	[LANDLOCK_READ] = READING,
	[LANDLOCK_EXECUTE] = READING | LANDLOCK_ACCESS_FS_EXECUTE,
	[LANDLOCK_APPEND] = READING | WRITING,
	[LANDLOCK_KEEP] = READING | WRITING | KEEPING,
};

int landlock_abi(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	return abi >= LANDLOCK_ABI_LEAST ? (int)abi : 0;
}

/* The kernel refuses what it does not know. */
static uint64_t known_files(int abi)
{
	return FILES_OF_ABI_2 | (abi >= ABI_TRUNCATE ? ACCESS_TRUNCATE : 0) |
	       (abi >= ABI_IOCTL ? ACCESS_IOCTL_DEV : 0);
}

int landlock_begin(bool abstract_sockets)
{
	int abi = landlock_abi();
	struct attributes a = {.files = known_files(abi)};
	size_t size = abi >= ABI_SCOPE	   ? sizeof a
		      : abi >= ABI_NETWORK ? offsetof(struct attributes, scoped)
					   : offsetof(struct attributes, network);
	if (abi >= ABI_SCOPE)
		a.scoped = SCOPE_SIGNAL | (abstract_sockets ? 0 : SCOPE_ABSTRACT_SOCKET);
	return (int)syscall(SYS_landlock_create_ruleset, &a, size, 0);
}

bool landlock_grant(int rules, const char *path, enum landlock_right right)
{
	struct stat st;
	struct landlock_path_beneath_attr rule = {.allowed_access = rights[right] &
								    known_files(landlock_abi())};
	rule.parent_fd = open(path, O_PATH | O_CLOEXEC);
	if (rule.parent_fd < 0)
		return false;
	if (fstat(rule.parent_fd, &st) == 0 && !S_ISDIR(st.st_mode))
		rule.allowed_access &= OF_A_FILE;
	bool ok = syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0;
	file_close(rule.parent_fd);
	return ok;
}

bool landlock_enforce(int rules)
{
	bool ok = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
		  syscall(SYS_landlock_restrict_self, rules, 0) == 0;
	file_close(rules);
	return ok;
}
