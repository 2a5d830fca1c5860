/* SPDX-License-Identifier: ISC */
#include "cmd/text/order_args.h"

#include "base/conf_units.h"

#include <string.h>

#define FOR_MOST_MS (INT64_C(365) * 24 * 3600000)

/* "--NAME VALUE" or "--NAME=VALUE"; NULL: it is not this option, or has no value. */
static const char *value_of(const char *name, int argc, char **argv, int *i)
{
	size_t len = strlen(name);
	if (strncmp(argv[*i], name, len) != 0)
		return NULL;
	if (argv[*i][len] == '=')
		return argv[*i] + len + 1;
	return argv[*i][len] == '\0' && *i + 1 < argc ? argv[++*i] : NULL;
}

/* An option; false: there is none of that name, or its argument is missing. */
static bool take_option(struct order_args *a, int argc, char **argv, int *i)
{
	const char *word = argv[*i], *value;
	bool with_file = strcmp(word, "-c") == 0 || strcmp(word, "--config") == 0;
	if (strcmp(word, "--json") == 0)
		a->json = true;
	else if (strcmp(word, "--tabs") == 0)
		a->tabs = true;
	else if (strcmp(word, "--cluster") == 0)
		a->cluster = true;
	else if (strcmp(word, "--help") == 0)
		a->help = true;
	else if ((value = value_of("--provider", argc, argv, i)))
		a->provider = value;
	else if ((value = value_of("--for", argc, argv, i)))
		a->for_text = value;
	else if ((value = value_of("--flow", argc, argv, i)))
		a->flow = value;
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
	if (strcmp(word, "-c") == 0 || strcmp(word, "--config") == 0 ||
	    strcmp(word, "--provider") == 0 || strcmp(word, "--for") == 0 ||
	    strcmp(word, "--flow") == 0)
		buf_printf(error, "%s wants a value", word);
	else
		buf_printf(error, "there is no option %s", word);
}

static bool take_name(struct order_args *a, const char *command, const char *word,
		      const char *named, struct buf *error)
{
	if (a->name || !*word) {
		buf_printf(error, "%s %s: name %s, and one only", command, order_word(a->verb),
			   named);
		return false;
	}
	a->name = word;
	return true;
}

/* Of --for. */
static bool read_duration(struct order_args *a, struct buf *error)
{
	struct buf why = {0};
	bool good =
		!a->for_text || (conf_amount_parse(CONF_duration, a->for_text, &a->for_ms, &why) &&
				 a->for_ms > 0 && a->for_ms <= FOR_MOST_MS);
	if (!good)
		buf_printf(error, "--for %s: it is a time such as 90s, 30m, 1h or 2d, up to 365d",
			   a->for_text);
	buf_fini(&why);
	return good;
}

static bool check_order(struct order_args *a, const char *command, const char *named,
			struct buf *error)
{
	bool change = order_changes(a->verb);
	if (!read_duration(a, error))
		return false;
	if (a->name && a->provider)
		buf_printf(error, "%s %s: name %s or --provider, and one only", command,
			   order_word(a->verb), named);
	else if (a->for_text && a->verb != ORDER_SUSPEND)
		buf_puts(error, "--for belongs to suspend");
	else if (change && !a->name && !a->provider)
		buf_printf(error, "%s %s: name %s", command, order_word(a->verb), named);
	else if (a->flow && change)
		buf_puts(error, "--flow belongs to list and show");
	else if (a->tabs && (a->json || a->verb != ORDER_LIST))
		buf_puts(error, "--tabs belongs to list, without --json");
	else if (a->cluster && a->verb == ORDER_SHOW)
		buf_puts(error, "--cluster does not belong to show");
	else
		return true;
	return false;
}

bool order_args_name(const char *name, size_t most)
{
	for (const char *p = name; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			return false;
	return strlen(name) <= most;
}

bool order_args_on_nodes(const struct order_args *a, struct buf *error)
{
	if (!a->cluster || order_changes(a->verb))
		return true;
	buf_puts(error, "--cluster belongs to suspend, resume and reset");
	return false;
}

bool order_args_parse(struct order_args *a, int argc, char **argv, const char *named,
		      struct buf *error)
{
	bool verb = false;   /* one was given */
	bool options = true; /* until "--", behind which a name may begin with a dash */
	*a = (struct order_args){.verb = ORDER_LIST};
	for (int i = 1; i < argc; i++) {
		bool ok;
		if (options && strcmp(argv[i], "--") == 0) {
			options = false;
			ok = true;
		} else if (options && argv[i][0] == '-' && argv[i][1]) {
			ok = take_option(a, argc, argv, &i);
			if (!ok)
				wrong_option(argv[i], error);
		} else if (!verb && !a->name && order_find(argv[i], strlen(argv[i]), &a->verb)) {
			ok = verb = true;
		} else if (!verb && a->name) {
			buf_printf(error, "%s %s: it is one of list, show, suspend, resume, reset",
				   argv[0], a->name);
			ok = false;
		} else {
			ok = take_name(a, argv[0], argv[i], named, error);
		}
		if (!ok)
			return false;
	}
	return a->help || check_order(a, argv[0], named, error);
}
