/* SPDX-License-Identifier: ISC */
#include "cmd/text/user_args.h"

#include <string.h>

static const struct {
	const char *word;
	enum limiter_op op;
	bool full, wants_login;
} verbs[] = {
	{"list", LIMITER_LIST, false, false},	   {"show", LIMITER_LIST, true, false},
	{"suspend", LIMITER_SUSPEND, false, true}, {"resume", LIMITER_RESUME, false, true},
	{"reset", LIMITER_RESET, false, true},
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
static bool take_option(struct user_args *a, int argc, char **argv, int *i)
{
	const char *word = argv[*i];
	bool with_file = strcmp(word, "-c") == 0 || strcmp(word, "--config") == 0;
	if (strcmp(word, "--json") == 0)
		a->json = true;
	else if (strcmp(word, "--cluster") == 0)
		a->cluster = true;
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

static bool take_word(struct user_args *a, const char *word, int *verb, struct buf *error)
{
	if (*verb < 0) {
		*verb = verb_of(word);
		if (*verb < 0)
			buf_printf(error, "user: unknown word %s", word);
		return *verb >= 0;
	}
	if (*a->login) {
		buf_puts(error, "user: one login only");
		return false;
	}
	return users_login(word, a->login, error);
}

bool user_args_parse(struct user_args *a, int argc, char **argv, struct buf *error)
{
	int verb = -1;
	memset(a, 0, sizeof *a);
	for (int i = 1; i < argc; i++) {
		if (argv[i][0] == '-' && argv[i][1]) {
			if (!take_option(a, argc, argv, &i)) {
				buf_printf(error, "user: unknown option %s", argv[i]);
				return false;
			}
		} else if (!take_word(a, argv[i], &verb, error)) {
			return false;
		}
	}
	if (verb < 0)
		verb = 0;
	a->op = verbs[verb].op;
	a->full = verbs[verb].full;
	if (!a->help && verbs[verb].wants_login && !*a->login) {
		buf_printf(error, "user %s: name a login", verbs[verb].word);
		return false;
	}
	if (!a->help && a->cluster && a->op == LIMITER_LIST) {
		buf_puts(error, "--cluster belongs to suspend, resume and reset");
		return false;
	}
	return true;
}
