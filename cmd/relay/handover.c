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
#include <systemd/sd-daemon.h>
#include <unistd.h>

static char program[OWN_PROGRAM];

void handover_prepare(void)
{
	own_program_named(program);
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

void handover_exec(const int *fd, int n, char **argv)
{
	int argc = 0;
	while (argv[argc])
		argc++;
	char **words = mem_zalloc(((size_t)argc + 2) * sizeof *words);
	words[0] = program;
	memcpy(words + 1, argv, (size_t)argc * sizeof *words);
	if (place_descriptors(fd, n)) {
		set_number("LISTEN_PID", (int)getpid());
		set_number("LISTEN_FDS", n);
		unsetenv("LISTEN_FDNAMES");
		sandbox_hand_over();
		execv(program, words);
	}
	fprintf(stderr, "sluice: %s: %s\n", program, strerror(errno));
	free(words);
}
