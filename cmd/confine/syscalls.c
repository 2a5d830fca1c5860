/* SPDX-License-Identifier: ISC */
#include "cmd/confine/syscalls.h"

#include "base/mem.h"
#include "base/thread.h"
#include "cmd/confine/syscall_table.h"

#include <asm/termbits.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* As on a kernel that has no such call. */
#define REFUSE SCMP_ACT_ERRNO(ENOSYS)

struct row {
	const char *name;
	unsigned conditions;
	struct scmp_arg_cmp condition[2];
};

#define CALL(name) {#name, 0, {{0}}},
#define WHERE(name, argument, mask, value)                                                         \
	{#name, 1, {SCMP_CMP64(argument, SCMP_CMP_MASKED_EQ, (mask), (uint64_t)(value))}},
#define WHERE2(name, a1, m1, v1, a2, m2, v2)                                                       \
	{#name,                                                                                    \
	 2,                                                                                        \
	 {SCMP_CMP64(a1, SCMP_CMP_MASKED_EQ, (m1), (uint64_t)(v1)),                                \
	  SCMP_CMP64(a2, SCMP_CMP_MASKED_EQ, (m2), (uint64_t)(v2))}},

static struct sock_fprog of_threads; /* empty: there is no such filter */

/* A call that this kind of machine has not is no fault. */
static int allow_call(scmp_filter_ctx filter, const struct row *row)
{
	int number = seccomp_syscall_resolve_name(row->name);
	if (number < 0)
		return 0;
	return seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, number, row->conditions,
				      row->condition);
}

/* main: with what only main may do. */
static scmp_filter_ctx build_filter(bool main, struct buf *error)
{
	const struct row row[] = {SYSCALLS(CALL, WHERE, WHERE2)};
	const struct row of_main[] = {SYSCALLS_OF_MAIN(CALL, WHERE, WHERE2)
					      SYSCALLS_OF_SANITIZER(CALL)};
	scmp_filter_ctx filter = seccomp_init(REFUSE);
	int failed = filter ? 0 : -ENOMEM;
	for (size_t i = 0; !failed && i < sizeof row / sizeof *row; i++)
		failed = allow_call(filter, &row[i]);
	for (size_t i = 0; main && !failed && i < sizeof of_main / sizeof *of_main; i++)
		failed = allow_call(filter, &of_main[i]);
	/* A tree, not a list, of calls; and no measures against our own threads, which would make
	 * every branch dearer. */
	if (!failed)
		failed = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	seccomp_attr_set(filter, SCMP_FLTATR_CTL_SSB, 1);
	seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	if (!failed)
		return filter;
	buf_printf(error, "the filter of system calls: %s", strerror(-failed));
	seccomp_release(filter);
	return NULL;
}

bool syscalls_offered(void)
{
	/* No filter is at that address: EFAULT says that there could have been one. */
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL) == 0 || errno == EFAULT;
}

/* The program comes through a pipe, which holds more than the kernel takes for a filter. */
static bool take_program(int fd)
{
	const size_t most = BPF_MAXINSNS * sizeof(struct sock_filter);
	struct sock_filter *program = mem_alloc(most);
	ssize_t size = read(fd, program, most);
	if (size <= 0 || (size_t)size % sizeof *program != 0) {
		free(program);
		return false;
	}
	of_threads.len = (unsigned short)((size_t)size / sizeof *program);
	of_threads.filter = program;
	return true;
}

bool syscalls_prepare(struct buf *error)
{
	int way[2] = {-1, -1};
	scmp_filter_ctx filter = build_filter(false, error);
	if (!filter)
		return false;
	bool ok = pipe2(way, O_CLOEXEC | O_NONBLOCK) == 0 &&
		  seccomp_export_bpf(filter, way[1]) == 0 && take_program(way[0]);
	if (!ok)
		buf_printf(error, "the filter of system calls: %s", strerror(errno));
	if (way[0] >= 0) {
		close(way[0]);
		close(way[1]);
	}
	seccomp_release(filter);
	return ok;
}

bool syscalls_restrict(struct buf *error)
{
	scmp_filter_ctx filter = build_filter(true, error);
	if (!filter)
		return false;
	int failed = seccomp_load(filter);
	if (failed)
		buf_printf(error, "the filter of system calls: %s", strerror(-failed));
	seccomp_release(filter);
	return !failed;
}

void syscalls_restrict_thread(void)
{
	if (of_threads.len == 0 ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &of_threads) == 0)
		return;
	fprintf(stderr, "sluice: a thread can't be restricted: %s\n", strerror(errno));
	abort();
}
