/* SPDX-License-Identifier: ISC */
#include "cmd/confine/own_program.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* The caller's to free(); NULL: there is none. */
static char *absolute_name(void)
{
	const char *name = (const char *)getauxval(AT_EXECFN);
	if (!name || *name == '/')
		return name ? mem_strdup(name) : NULL;
	char *folder = getcwd(NULL, 0);
	char *whole = folder ? mem_printf("%s/%s", folder, name) : NULL;
	free(folder);
	return whole;
}

void own_program_named(char path[OWN_PROGRAM])
{
	char *name = absolute_name(), *leads_to = name ? realpath(name, NULL) : NULL;
	own_program(path);
	if (leads_to && strcmp(leads_to, path) == 0 && strlen(name) < OWN_PROGRAM)
		snprintf(path, OWN_PROGRAM, "%s", name);
	free(leads_to);
	free(name);
}
