/* SPDX-License-Identifier: ISC */
/* stalling.c - a library that is loaded before the others: each of a program's threads stands still now and then, as one that
 * has no processor does, and the disk is slow. Made and used by tests/steady --stalls.
 *
 * Once in 0 to 2 * EACH_MS (evenly), when it was woken or had the disk write, a thread waits for up to STALL_MS more. Which
 * and for how long follows from SLUICE_STALLS, a number, and from the order in which threads began. SLUICE_STALLED is the
 * beginning of the program's name: sluice, or python for the tests themselves. All others are left alone. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { EACH_MS = 600, STALL_MS = 400 };

static atomic_uint_least64_t seed; /* 0: this program is left alone */
static _Thread_local uint64_t state;
static _Thread_local int64_t next_ms;

static void __attribute__((constructor)) look_whether_it_is_ours(void)
{
	char path[PATH_MAX];
	const char *number = getenv("SLUICE_STALLS"), *name = getenv("SLUICE_STALLED");
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
	if (!number || !name || n <= 0)
		return;
	path[n] = '\0';
	if (strncmp(strrchr(path, '/') + 1, name, strlen(name)) == 0)
		atomic_store(&seed, strtoull(number, NULL, 10) + 1);
}

/* splitmix64 */
static uint64_t next_random(void)
{
	uint64_t x = state += 0x9e3779b97f4a7c15;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

static int64_t read_clock_ms(void)
{
	struct timespec t;
	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void choose_next_stall(void)
{
	next_ms = read_clock_ms() + (int64_t)(next_random() % (2 * EACH_MS));
}

static void stall_now_and_then(void)
{
	if (!atomic_load_explicit(&seed, memory_order_relaxed))
		return;
	if (!state) {
		state = atomic_fetch_add(&seed, 1000003);
		choose_next_stall();
	}
	if (read_clock_ms() < next_ms)
		return;
	int saved = errno;
	long ns = (long)(next_random() % STALL_MS) * 1000000;
	syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &(struct timespec){.tv_nsec = ns}, NULL);
	choose_next_stall();
	errno = saved;
}

int epoll_wait(int fd, struct epoll_event *events, int most, int timeout_ms)
{
	int n = epoll_pwait(fd, events, most, timeout_ms, NULL);
	stall_now_and_then();
	return n;
}

int poll(struct pollfd *fds, nfds_t nfds, int timeout_ms)
{
	struct timespec t = {timeout_ms / 1000, timeout_ms % 1000 * 1000000};
	int n = ppoll(fds, nfds, timeout_ms < 0 ? NULL : &t, NULL);
	stall_now_and_then();
	return n;
}

int fdatasync(int fd)
{
	stall_now_and_then();
	return (int)syscall(SYS_fdatasync, fd);
}

int fsync(int fd)
{
	stall_now_and_then();
	return (int)syscall(SYS_fsync, fd);
}
