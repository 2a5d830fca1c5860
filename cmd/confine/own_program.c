/* SPDX-License-Identifier: ISC */
#include "cmd/confine/own_program.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>

void own_program(char path[OWN_PROGRAM])
{
	ssize_t n = readlink("/proc/self/exe", path, OWN_PROGRAM - 1);
	path[n > 0 ? n : 0] = '\0';
	const char *name = (const char *)getauxval(AT_EXECFN);
	char *real = n <= 0 && name ? realpath(name, NULL) : NULL;
	if (real)
		snprintf(path, OWN_PROGRAM, "%s", real);
	free(real);
}
