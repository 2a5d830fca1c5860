/* SPDX-License-Identifier: ISC */
#include "cmd/relay/handover.h"

#include "base/mem.h"
#include "cmd/confine/own_program.h"
#include "cmd/confine/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

static const char named[] = "SLUICE_PROGRAM", itself[] = "/proc/self/exe";
static const char unasked[] = "usage: sluice serve";

enum { TRY_SECONDS = 60 }; /* long tables take a while to read */

static char program[OWN_PROGRAM];
static char **words;	  /* for execv() */
static struct stat tried; /* as its file was then */
static const struct stat none;

/* The kernel calls a process by the last part of the path that was executed. */
static void take_back_name(const char *name)
{
	const char *slash = strrchr(name, '/');
	snprintf(program, sizeof program, "%s", name);
	prctl(PR_SET_NAME, slash ? slash + 1 : name);
	unsetenv(named);
}

static char **words_of(char **argv, const char *last)
{
	int argc = 0;
	while (argv[argc])
		argc++;
	char **all = mem_zalloc(((size_t)argc + 3) * sizeof *all);
	all[0] = program;
	memcpy(all + 1, argv, (size_t)argc * sizeof *all);
	all[argc + 1] = (char *)last;
	return all;
}

void handover_prepare(char **argv)
{
	const char *name = getenv(named);
	if (name)
		take_back_name(name);
	else
		own_program_named(program);
	words = words_of(argv, NULL);
}

bool handover_possible(struct buf *says)
{
	if (faccessat(AT_FDCWD, program, X_OK, AT_EACCESS) == 0)
		return sandbox_reaches_program(program, says);
	buf_printf(says, "%s: %s\n", program, strerror(errno));
	return false;
}

/* First all of them out of the way: some may lie where others are to go. */
static bool place_descriptors(const int *fd, int n)
{
	int *away = mem_zalloc(((size_t)n + 1) * sizeof *away);
	bool ok = true;
	for (int i = 0; ok && i < n; i++)
		ok = (away[i] = fcntl(fd[i], F_DUPFD_CLOEXEC, SD_LISTEN_FDS_START + n)) >= 0;
	for (int i = 0; ok && i < n; i++)
		ok = dup2(away[i], SD_LISTEN_FDS_START + i) >= 0;
	free(away);
	return ok;
}

static void set_number(const char *name, int value)
{
	char text[16];
	snprintf(text, sizeof text, "%d", value);
	setenv(name, text, 1);
}

bool handover_try(struct trial *t)
{
	char **try = words_of(words + 1, "--try");
	if (stat(program, &tried) != 0)
		tried = none;
	bool begun = trial_begin(t, program, try, TRY_SECONDS);
	int error = errno;
	free(try);
	if (!begun)
		tried = none;
	errno = error;
	return begun;
}

bool handover_passed(struct trial *t, struct buf *says)
{
	struct buf why = {0};
	bool passed = trial_passed(t, unasked, &why);
	if (!passed) {
		buf_printf(says, "%s: would not start: %s", program, buf_cstr(&why));
		tried = none;
	}
	buf_fini(&why);
	return passed;
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

bool handover_is_what_was_tried(void)
{
	struct stat now;
	return tried.st_ino == 0 || (stat(program, &now) == 0 && is_same_file(&now, &tried));
}

/* The program of this process, wherever its name leads to by now. */
static void execute_itself(void)
{
	setenv(named, program, 1);
	execv(itself, words);
}

void handover_exec(const int *fd, int n)
{
	bool as_tried = handover_is_what_was_tried();
	if (place_descriptors(fd, n)) {
		set_number("LISTEN_PID", (int)getpid());
		set_number("LISTEN_FDS", n);
		unsetenv("LISTEN_FDNAMES");
		sandbox_hand_over();
		if (as_tried)
			execv(program, words);
		fprintf(stderr, "sluice: %s: not executed: %s; what ran before goes on\n", program,
			as_tried ? strerror(errno) : "replaced since it was tried");
		execute_itself();
	}
	fprintf(stderr, "sluice: %s: %s\n", program, strerror(errno));
}
