/* SPDX-License-Identifier: ISC */
/* The relay with one order more on its control socket, "breakout PATH [NAME]": try all, or one, in main and in a thread like
 * those of peers, what a sandbox must refuse. Each line of the answer: thread, attempt, result; 0 or
 * more is a success, and else the number of the error. */
#include "base/thread.h"
#include "cmd/control/control.h"
#include "cmd/relay/requests.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

void __real_requests_handle(void *owner, struct request *);
void __wrap_requests_handle(void *owner, struct request *);

static char outside[4096]; /* a path that is none of the relay's */
static const char *only;   /* NULL: all */

static long open_shadow(void)
{
	return open("/etc/shadow", O_RDONLY | O_CLOEXEC);
}

static long write_outside(void)
{
	return open(outside, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
}

static long make_folder_outside(void)
{
	return mkdir(outside, 0700);
}

static long execute(void)
{
	char *words[] = {"sh", "-c", "exit 99", NULL}, *none[] = {NULL};
	return execve("/bin/sh", words, none);
}

static long fork_process(void)
{
	long child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (child == 0)
		syscall(SYS_exit_group, 0); /* no sanitizer is to look at the copy */
	if (child > 0)
		waitpid((pid_t)child, NULL, 0);
	return child;
}

static long run_beside(void)
{
	pid_t child = vfork();
	if (child == 0)
		_exit(0);
	if (child > 0)
		waitpid(child, NULL, 0);
	return child;
}

static long packet_socket(void)
{
	return socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
}

static long raw_socket(void)
{
	return socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);
}

static long netlink_socket(void)
{
	return socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0);
}

static long trace_parent(void)
{
	return ptrace(PTRACE_SEIZE, getppid(), NULL, NULL);
}

static long signal_parent(void)
{
	return kill(getppid(), 0);
}

static long run_memory(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);
	return p == MAP_FAILED ? -1 : 0;
}

static long dump(void)
{
	errno = 0;
	return prctl(PR_GET_DUMPABLE) == 1 ? 0 : -1;
}

static const struct {
	const char *name;
	long (*try)(void);
} attempts[] = {
	{"open_shadow", open_shadow},
	{"write_outside", write_outside},
	{"make_folder_outside", make_folder_outside},
	{"execute", execute},
	{"packet_socket", packet_socket},
	{"raw_socket", raw_socket},
	{"netlink_socket", netlink_socket},
	{"fork", fork_process},
	{"run_beside", run_beside},
	{"trace_parent", trace_parent},
	{"signal_parent", signal_parent},
	{"run_memory", run_memory},
	{"dump", dump},
};

static void try_all(struct buf *to, const char *thread)
{
	for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++) {
		if (only && strcmp(attempts[i].name, only) != 0)
			continue;
		errno = 0;
		long result = attempts[i].try();
		if (result >= 0)
			buf_printf(to, "%s %s done\n", thread, attempts[i].name);
		else
			buf_printf(to, "%s %s refused %s\n", thread, attempts[i].name,
				   errno ? strerrorname_np(errno) : "-");
	}
}

static void *try_in_thread(void *to)
{
	try_all(to, "thread");
	return NULL;
}

void __wrap_requests_handle(void *owner, struct request *r)
{
	struct buf says = {0};
	pthread_t thread;
	if (r->argc < 2 || strcmp(r->argv[0], "breakout") != 0) {
		__real_requests_handle(owner, r);
		return;
	}
	snprintf(outside, sizeof outside, "%s", r->argv[1]);
	only = r->argv[2];
	try_all(&says, "main");
	if (thread_start(&thread, "stranger", try_in_thread, &says) == 0)
		pthread_join(thread, NULL);
	control_say(r, buf_data(&says), buf_len(&says));
	buf_fini(&says);
	control_finish(r, 0);
}
