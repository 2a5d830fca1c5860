/* SPDX-License-Identifier: ISC */
#include "cmd/local/postfix_master.h"

#include "base/mem.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS " \t\r\n"

enum { NAME = 0, TYPE = 1, COMMAND = 7, FIELDS = 8 };

struct reading {
	void (*tell)(void *context, int line, const char *text);
	void *context;
	int line;
	char *service; /* the last, or NULL */
	bool carries;  /* it takes mail or sends it, so that a section of ours has its options */
	bool told;     /* of its options, or there can be none */
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

/* True: it takes mail or sends it. */
static bool look_at_service(const struct reading *r, const char *type, const char *command)
{
	static const char *const usual[] = {"smtp",	"25",	   "relay",  "lmtp",
					    "maildrop", "uucp",	   "ifmail", "scalemail-backend",
					    "bsmtp",	"mailman", NULL};
	static const char *const carriers[] = {"smtp", "lmtp", NULL};
	bool known = is_one_of(r->service, usual);
	if (strcmp(command, "smtpd") == 0) {
		if (!known && strcmp(type, "inet") == 0)
			tell_left_out(r, "service",
				      "write a section listener of that name, with its address");
		return true;
	}
	if (strcmp(command, "spawn") == 0)
		tell_left_out(r, "service",
			      "no programs are run: tables of access, which may be a socketmap:, "
			      "take the place of a policy server");
	if (!known && strcmp(command, "pipe") == 0)
		tell_left_out(r, "transport",
			      "no programs are run: a server that speaks LMTP takes their place");
	bool carrier = strcmp(type, "unix") == 0 && is_one_of(command, carriers);
	if (!known && carrier)
		tell_left_out(r, "transport", "write a section transport of that name");
	return carrier;
}

/* The value of an option that changes nothing: it only names the service in the log. */
static bool is_for_log(const char *value)
{
	static const char name[] = "syslog_name";
	return strncmp(value, name, sizeof name - 1) == 0 &&
	       (value[sizeof name - 1] == '=' || value[sizeof name - 1] == '\0');
}

static void tell_options(struct reading *r)
{
	tell_left_out(r, "the options of",
		      r->carries ? "they belong into the section of its listener or transport"
				 : "there is no such service here: see sluice-postfix(7) for what "
				   "they set");
	r->told = true;
}

/* Words from this one on, behind a command or in a line that continues it; NULL: where strtok_r() is. What a program is called
 * with is its own. */
static void take_options(struct reading *r, char *from, char **save)
{
	for (char *word; !r->told && (word = strtok_r(from, BLANKS, save)); from = NULL) {
		const char *value = word + 2;
		if (strncmp(word, "argv=", 5) == 0)
			r->told = true;
		if (strncmp(word, "-o", 2) != 0)
			continue;
		if (!*value)
			value = strtok_r(NULL, BLANKS, save);
		if (value && !is_for_log(value))
			tell_options(r);
	}
}

static void take_service(struct reading *r, char *line)
{
	char *field[FIELDS], *save = NULL;
	int n = 0;
	for (char *word = strtok_r(line, BLANKS, &save); word;
	     word = n < FIELDS ? strtok_r(NULL, BLANKS, &save) : NULL)
		field[n++] = word;
	free(r->service);
	r->service = n == FIELDS ? mem_strdup(field[NAME]) : NULL;
	r->carries = r->service && look_at_service(r, field[TYPE], field[COMMAND]);
	r->told = !r->service;
	take_options(r, NULL, &save);
}

void postfix_master_read(const char *file,
			 void (*tell_of)(void *context, int line, const char *text), void *context)
{
	struct reading r = {.tell = tell_of, .context = context, .told = true};
	char *line = NULL, *save = NULL;
	size_t size = 0;
	FILE *from = fopen(file, "re");
	while (from && getline(&line, &size, from) >= 0) {
		r.line++;
		char first = line[strspn(line, BLANKS)];
		if (first == '\0' || first == '#')
			continue;
		if (isspace((unsigned char)*line))
			take_options(&r, line, &save);
		else
			take_service(&r, line);
	}
	if (from)
		fclose(from);
	free(line);
	free(r.service);
}
