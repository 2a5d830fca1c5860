/* syscall_table.h - the system calls that the relay makes, one row each; all others are refused.
 *
 *	CALL(name)			with whatever arguments
 *	WHERE(name, argument, mask, value)	only where (argument & mask) == value; rows of one
 *						call are alternatives
 *	WHERE2(name, a1, m1, v1, a2, m2, v2)	both
 *
 *	SYSCALLS		every thread
 *	SYSCALLS_OF_MAIN	main only, which reads the configuration and starts the program anew
 *
 * A call that this machine's kind does not have is passed over. Others fail as on a kernel that does not
 * know them (ENOSYS), so that the C library falls back on what it used before.
 *
 * SEE        syscalls(2); syscalls.h.
 */
#ifndef CMD_CONFINE_SYSCALL_TABLE_H
#define CMD_CONFINE_SYSCALL_TABLE_H

#define SYSCALLS_MEMORY(CALL, WHERE)                                                               \
	CALL(brk)                                                                                  \
	CALL(madvise)                                                                              \
	CALL(mlock)                                                                                \
	CALL(mlock2)                                                                               \
	CALL(mremap)                                                                               \
	CALL(munlock)                                                                              \
	CALL(munmap)                                                                               \
	WHERE(mmap, 2, PROT_EXEC, 0)                                                               \
	WHERE(mprotect, 2, PROT_EXEC, 0)

#define SYSCALLS_FILES(CALL, WHERE)                                                                \
	CALL(access)                                                                               \
	CALL(chmod)                                                                                \
	CALL(close)                                                                                \
	CALL(close_range)                                                                          \
	CALL(dup)                                                                                  \
	CALL(dup2)                                                                                 \
	CALL(dup3)                                                                                 \
	CALL(faccessat)                                                                            \
	CALL(faccessat2)                                                                           \
	CALL(fadvise64)                                                                            \
	CALL(fallocate)                                                                            \
	CALL(fchmod)                                                                               \
	CALL(fchmodat)                                                                             \
	CALL(fcntl)                                                                                \
	CALL(fdatasync)                                                                            \
	CALL(flock)                                                                                \
	CALL(fstat)                                                                                \
	CALL(fstatfs)                                                                              \
	CALL(fsync)                                                                                \
	CALL(ftruncate)                                                                            \
	CALL(getcwd)                                                                               \
	CALL(getdents64)                                                                           \
	CALL(inotify_add_watch)                                                                    \
	CALL(inotify_init1)                                                                        \
	CALL(inotify_rm_watch)                                                                     \
	WHERE(ioctl, 1, UINT32_MAX, FIONBIO)                                                       \
	WHERE(ioctl, 1, UINT32_MAX, FIONREAD)                                                      \
	WHERE(ioctl, 1, UINT32_MAX, TCGETS)                                                        \
	CALL(lseek)                                                                                \
	CALL(lstat)                                                                                \
	CALL(mkdir)                                                                                \
	CALL(mkdirat)                                                                              \
	CALL(newfstatat)                                                                           \
	CALL(open)                                                                                 \
	CALL(openat)                                                                               \
	CALL(pipe2)                                                                                \
	CALL(pread64)                                                                              \
	CALL(preadv)                                                                               \
	CALL(pwrite64)                                                                             \
	CALL(pwritev)                                                                              \
	CALL(read)                                                                                 \
	CALL(readlink)                                                                             \
	CALL(readlinkat)                                                                           \
	CALL(readv)                                                                                \
	CALL(rename)                                                                               \
	CALL(renameat)                                                                             \
	CALL(renameat2)                                                                            \
	CALL(stat)                                                                                 \
	CALL(statfs)                                                                               \
	CALL(statx)                                                                                \
	CALL(sync_file_range)                                                                      \
	CALL(umask)                                                                                \
	CALL(unlink)                                                                               \
	CALL(unlinkat)                                                                             \
	CALL(write)                                                                                \
	CALL(writev)

/* A socket is a stream or takes datagrams: none is raw. The type's flags lie above its four bits. */
#define SYSCALLS_NETWORK(CALL, WHERE, WHERE2)                                                      \
	CALL(accept)                                                                               \
	CALL(accept4)                                                                              \
	CALL(bind)                                                                                 \
	CALL(connect)                                                                              \
	CALL(getpeername)                                                                          \
	CALL(getsockname)                                                                          \
	CALL(getsockopt)                                                                           \
	CALL(listen)                                                                               \
	CALL(recvfrom)                                                                             \
	CALL(recvmmsg)                                                                             \
	CALL(recvmsg)                                                                              \
	CALL(sendfile)                                                                             \
	CALL(sendmmsg)                                                                             \
	CALL(sendmsg)                                                                              \
	CALL(sendto)                                                                               \
	CALL(setsockopt)                                                                           \
	CALL(shutdown)                                                                             \
	WHERE2(socket, 0, UINT32_MAX, AF_INET, 1, 15, SOCK_STREAM)                                 \
	WHERE2(socket, 0, UINT32_MAX, AF_INET, 1, 15, SOCK_DGRAM)                                  \
	WHERE2(socket, 0, UINT32_MAX, AF_INET6, 1, 15, SOCK_STREAM)                                \
	WHERE2(socket, 0, UINT32_MAX, AF_INET6, 1, 15, SOCK_DGRAM)                                 \
	WHERE2(socket, 0, UINT32_MAX, AF_UNIX, 1, 15, SOCK_STREAM)                                 \
	WHERE2(socket, 0, UINT32_MAX, AF_UNIX, 1, 15, SOCK_DGRAM)

#define SYSCALLS_WAITING(CALL)                                                                     \
	CALL(clock_getres)                                                                         \
	CALL(clock_gettime)                                                                        \
	CALL(clock_nanosleep)                                                                      \
	CALL(epoll_create1)                                                                        \
	CALL(epoll_ctl)                                                                            \
	CALL(epoll_pwait)                                                                          \
	CALL(epoll_pwait2)                                                                         \
	CALL(epoll_wait)                                                                           \
	CALL(eventfd2)                                                                             \
	CALL(futex)                                                                                \
	CALL(gettimeofday)                                                                         \
	CALL(nanosleep)                                                                            \
	CALL(poll)                                                                                 \
	CALL(ppoll)                                                                                \
	CALL(pselect6)                                                                             \
	CALL(restart_syscall)                                                                      \
	CALL(select)                                                                               \
	CALL(time)                                                                                 \
	CALL(timerfd_create)                                                                       \
	CALL(timerfd_settime)

/* seccomp: a thread may take more rights from itself. clone: threads, not processes; clone3, which
 * does not show what it makes, is not there. */
#define SYSCALLS_PROCESS(CALL, WHERE, WHERE2)                                                      \
	CALL(arch_prctl)                                                                           \
	WHERE(clone, 0, CLONE_THREAD, CLONE_THREAD)                                                \
	CALL(exit)                                                                                 \
	CALL(exit_group)                                                                           \
	CALL(getegid)                                                                              \
	CALL(geteuid)                                                                              \
	CALL(getgid)                                                                               \
	CALL(getpid)                                                                               \
	CALL(getppid)                                                                              \
	CALL(getrandom)                                                                            \
	CALL(getrlimit)                                                                            \
	CALL(getrusage)                                                                            \
	CALL(gettid)                                                                               \
	CALL(getuid)                                                                               \
	CALL(membarrier)                                                                           \
	WHERE(prctl, 0, UINT32_MAX, PR_SET_NAME)                                                   \
	WHERE(prctl, 0, UINT32_MAX, PR_GET_DUMPABLE)                                               \
	WHERE(prctl, 0, UINT32_MAX, PR_GET_SECCOMP)                                                \
	WHERE(prlimit64, 0, UINT32_MAX, 0)                                                         \
	CALL(rseq)                                                                                 \
	CALL(rt_sigaction)                                                                         \
	CALL(rt_sigpending)                                                                        \
	CALL(rt_sigprocmask)                                                                       \
	CALL(rt_sigreturn)                                                                         \
	CALL(sched_getaffinity)                                                                    \
	CALL(sched_yield)                                                                          \
	CALL(seccomp)                                                                              \
	CALL(set_robust_list)                                                                      \
	CALL(set_tid_address)                                                                      \
	WHERE2(setpriority, 0, UINT32_MAX, PRIO_PROCESS, 2, UINT32_MAX, THREAD_NICENESS)           \
	CALL(sigaltstack)                                                                          \
	CALL(sysinfo)                                                                              \
	WHERE(tgkill, 0, UINT32_MAX, (uint64_t)getpid())                                           \
	CALL(uname)

#define SYSCALLS(CALL, WHERE, WHERE2)                                                              \
	SYSCALLS_MEMORY(CALL, WHERE)                                                               \
	SYSCALLS_FILES(CALL, WHERE)                                                                \
	SYSCALLS_NETWORK(CALL, WHERE, WHERE2)                                                      \
	SYSCALLS_WAITING(CALL)                                                                     \
	SYSCALLS_PROCESS(CALL, WHERE, WHERE2)

/* To start the program anew, to try it before in a process of its own, and what its start needs: libraries, our addresses; tables in CDB. */
#define SYSCALLS_OF_MAIN(CALL, WHERE, WHERE2)                                                      \
	CALL(memfd_create)                                                                         \
	CALL(alarm)                                                                                \
	CALL(execve)                                                                               \
	CALL(setitimer)                                                                            \
	CALL(vfork)                                                                                \
	CALL(wait4)                                                                                \
	WHERE(clone, 0, UINT32_MAX, CLONE_VM | CLONE_VFORK | SIGCHLD)                              \
	WHERE(mmap, 2, PROT_EXEC, PROT_EXEC)                                                       \
	WHERE(mprotect, 2, PROT_EXEC, PROT_EXEC)                                                   \
	WHERE(prctl, 0, UINT32_MAX, PR_SET_DUMPABLE)                                               \
	WHERE2(socket, 0, UINT32_MAX, AF_NETLINK, 2, UINT32_MAX, NETLINK_ROUTE)

/* The leak detector stops the other threads by ptrace, from a process of its own, when main ends. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SYSCALLS_OF_SANITIZER(CALL)                                                                \
	CALL(clone)                                                                                \
	CALL(getdents)                                                                             \
	CALL(getpgrp)                                                                              \
	CALL(mincore)                                                                              \
	CALL(msync)                                                                                \
	CALL(personality)                                                                          \
	CALL(pipe)                                                                                 \
	CALL(prctl)                                                                                \
	CALL(ptrace)                                                                               \
	CALL(tgkill)
#else
#define SYSCALLS_OF_SANITIZER(CALL)
#endif

#endif
