/* SPDX-License-Identifier: ISC */
#include "cmd/local/postfix_master.h"

#include "base/mem.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME = 0, TYPE = 1, COMMAND = 7, FIELDS = 8 };

struct reading {
	void (*tell)(void *context, int line, const char *text);
	void *context;
	int line;
	char *service; /* the last, or NULL */
	bool matters;  /* options of it are to be looked at, and were not told of */
};

static void tell_left_out(const struct reading *r, const char *what, const char *advice)
{
	char *text = mem_printf("%s %s: left out: %s", what, r->service, advice);
	r->tell(r->context, r->line, text);
	free(text);
}

static bool is_one_of(const char *word, const char *const *words)
{
	for (; *words; words++)
		if (strcmp(word, *words) == 0)
			return true;
	return false;
}

/* False: what it is told by its options is no matter either. */
static bool look_at_service(const struct reading *r, const char *type, const char *command)
{
	static const char *const usual[] = {"smtp",	"25",	   "relay",  "lmtp",
					    "maildrop", "uucp",	   "ifmail", "scalemail-backend",
					    "bsmtp",	"mailman", NULL};
	static const char *const carriers[] = {"smtp", "lmtp", NULL};
	bool known = is_one_of(r->service, usual);
	if (strcmp(type, "inet") == 0 && strcmp(command, "smtpd") == 0) {
		if (!known)
			tell_left_out(r, "service",
				      "write a section listener of that name, with its address");
		return true;
	}
	if (strcmp(command, "spawn") == 0)
		tell_left_out(r, "service",
			      "no programs are run: tables of access, which may be a socketmap:, "
			      "take the place of a policy server");
	if (known)
		return false;
	if (strcmp(command, "pipe") == 0)
		tell_left_out(r, "transport",
			      "no programs are run: a server that speaks LMTP takes their place");
	else if (strcmp(type, "unix") == 0 && is_one_of(command, carriers))
		tell_left_out(r, "transport", "write a section transport of that name");
	else
		return false;
	return true;
}

static void take_service(struct reading *r, char *line)
{
	char *field[FIELDS], *save = NULL;
	int n = 0;
	for (char *word = strtok_r(line, " \t\r\n", &save); word && n < FIELDS;
	     word = strtok_r(NULL, " \t\r\n", &save))
		field[n++] = word;
	free(r->service);
	r->service = n == FIELDS ? mem_strdup(field[NAME]) : NULL;
	r->matters = r->service && look_at_service(r, field[TYPE], field[COMMAND]);
}

static void take_options(struct reading *r, const char *line)
{
	if (!r->matters || !strstr(line, "-o"))
		return;
	r->matters = false;
	tell_left_out(r, "the options of",
		      "they belong into the section of its listener or transport");
}

void postfix_master_read(const char *file,
			 void (*tell_of)(void *context, int line, const char *text), void *context)
{
	struct reading r = {.tell = tell_of, .context = context};
	char *line = NULL;
	size_t size = 0;
	FILE *from = fopen(file, "re");
	while (from && getline(&line, &size, from) >= 0) {
		r.line++;
		if (line[strspn(line, " \t\r\n")] == '\0' || *line == '#')
			continue;
		if (isspace((unsigned char)*line))
			take_options(&r, line);
		else
			take_service(&r, line);
	}
	if (from)
		fclose(from);
	free(line);
	free(r.service);
}
