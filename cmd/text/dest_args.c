/* SPDX-License-Identifier: ISC */
#include "cmd/text/dest_args.h"

#include <string.h>

static const struct {
	const char *word;
	enum dest_order order;
	bool full;
	bool wants_name;
} verbs[] = {
	{"list", DEST_LIST, false, false},	{"show", DEST_LIST, true, false},
	{"suspend", DEST_SUSPEND, false, true}, {"resume", DEST_RESUME, false, true},
	{"reset", DEST_RESET, false, true},
};

enum { VERBS = sizeof verbs / sizeof *verbs };

static int verb_of(const char *word)
{
	for (int i = 0; i < VERBS; i++)
		if (strcmp(verbs[i].word, word) == 0)
			return i;
	return -1;
}

/* An option; false: there is none of that name, or its argument is missing. */
static bool take_option(struct dest_args *a, int argc, char **argv, int *i)
{
	const char *word = argv[*i];
	bool with_file = strcmp(word, "-c") == 0 || strcmp(word, "--config") == 0;
	if (strcmp(word, "--json") == 0)
		a->json = true;
	else if (strcmp(word, "--cluster") == 0)
		a->cluster = true;
	else if (strcmp(word, "--tabs") == 0)
		a->tabs = true;
	else if (strcmp(word, "--help") == 0)
		a->help = true;
	else if (strncmp(word, "--config=", 9) == 0)
		a->conf_file = word + 9;
	else if (with_file && *i + 1 < argc)
		a->conf_file = argv[++*i];
	else if (!with_file && strncmp(word, "-c", 2) == 0)
		a->conf_file = word + 2;
	else
		return false;
	return true;
}

static void wrong_option(const char *word, struct buf *error)
{
	if (strcmp(word, "-c") == 0 || strcmp(word, "--config") == 0)
		buf_printf(error, "%s wants a value", word);
	else
		buf_printf(error, "there is no option %s", word);
}

static bool take_word(struct dest_args *a, const char *word, int *verb, struct buf *error)
{
	if (*verb < 0) {
		*verb = verb_of(word);
		if (*verb < 0)
			buf_printf(error,
				   "dest %s: it is one of list, show, suspend, resume, reset",
				   word);
		else
			a->order = verbs[*verb].order;
		return *verb >= 0;
	}
	if (a->name || !*word) {
		buf_printf(error, "dest %s: one site or host only", verbs[*verb].word);
		return false;
	}
	a->name = word;
	return true;
}

/* Names end up in a text with lines and tabs. */
static bool good_name(const char *name)
{
	for (const char *p = name; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			return false;
	return strlen(name) < 4096;
}

bool dest_args_parse(struct dest_args *a, int argc, char **argv, struct buf *error)
{
	int verb = -1;
	memset(a, 0, sizeof *a);
	for (int i = 1; i < argc; i++) {
		if (argv[i][0] == '-' && argv[i][1]) {
			if (!take_option(a, argc, argv, &i)) {
				wrong_option(argv[i], error);
				return false;
			}
		} else if (!take_word(a, argv[i], &verb, error)) {
			return false;
		}
	}
	if (verb < 0)
		verb = 0;
	a->order = verbs[verb].order;
	a->full = verbs[verb].full;
	if (!a->help && verbs[verb].wants_name && !a->name) {
		buf_printf(error, "dest %s: name a site or a host", verbs[verb].word);
		return false;
	}
	if (!a->help && a->tabs && (a->json || a->full || verbs[verb].order != DEST_LIST)) {
		buf_puts(error, "--tabs belongs to list, without --json");
		return false;
	}
	if (!a->help && a->cluster && a->order == DEST_LIST) {
		buf_puts(error, "--cluster belongs to suspend, resume and reset");
		return false;
	}
	if (a->name && !good_name(a->name)) {
		buf_puts(error, "dest: that is no name");
		return false;
	}
	return true;
}
