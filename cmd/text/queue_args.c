/* SPDX-License-Identifier: ISC */
#include "cmd/text/queue_args.h"

#include "base/ident.h"
#include "base/keyed_hash.h"
#include "cmd/options.h"

#include <stddef.h>
#include <string.h>

enum {
	OPTION_FILTER = OPTION_OWN, /* and an enum queue_condition */
	OPTION_ALL = OPTION_FILTER + QUEUE_BY_OLDER + 1,
	OPTION_FRESH,
	OPTION_REFILTER,
	OPTION_ENVELOPE,
	OPTION_HEADERS,
	OPTION_BODY,
	OPTION_REPAIR,
};

static const struct option longs[] = {
	{"queue", required_argument, NULL, OPTION_FILTER + QUEUE_BY_QUEUE},
	{"from", required_argument, NULL, OPTION_FILTER + QUEUE_BY_FROM},
	{"to", required_argument, NULL, OPTION_FILTER + QUEUE_BY_TO},
	{"domain", required_argument, NULL, OPTION_FILTER + QUEUE_BY_DOMAIN},
	{"site", required_argument, NULL, OPTION_FILTER + QUEUE_BY_SITE},
	{"older", required_argument, NULL, OPTION_FILTER + QUEUE_BY_OLDER},
	{"reason", required_argument, NULL, OPTION_FILTER + QUEUE_BY_REASON},
	{"flow", required_argument, NULL, OPTION_FILTER + QUEUE_BY_FLOW},
	{"login", required_argument, NULL, OPTION_FILTER + QUEUE_BY_LOGIN},
	{"client", required_argument, NULL, OPTION_FILTER + QUEUE_BY_CLIENT},
	{"all", no_argument, NULL, OPTION_ALL},
	{"fresh", no_argument, NULL, OPTION_FRESH},
	{"refilter", no_argument, NULL, OPTION_REFILTER},
	{"envelope", no_argument, NULL, OPTION_ENVELOPE},
	{"headers", no_argument, NULL, OPTION_HEADERS},
	{"body", no_argument, NULL, OPTION_BODY},
	{"repair", no_argument, NULL, OPTION_REPAIR},
	{"json", no_argument, NULL, OPTION_JSON},
	OPTIONS_COMMON,
};

static const struct {
	int option;
	size_t flag; /* of struct queue_args, a bool */
} switches[] = {
	{OPTION_HELP, offsetof(struct queue_args, help)},
	{OPTION_JSON, offsetof(struct queue_args, json)},
	{OPTION_ALL, offsetof(struct queue_args, all)},
	{OPTION_ENVELOPE, offsetof(struct queue_args, envelope)},
	{OPTION_HEADERS, offsetof(struct queue_args, header)},
	{OPTION_BODY, offsetof(struct queue_args, body)},
	{OPTION_REPAIR, offsetof(struct queue_args, repair)},
	{OPTION_FRESH, offsetof(struct queue_args, fresh)},
	{OPTION_REFILTER, offsetof(struct queue_args, refilter)},
};

static bool parse_option(struct queue_args *a, int option, struct buf *error)
{
	for (size_t i = 0; i < sizeof switches / sizeof *switches; i++)
		if (switches[i].option == option) {
			*(bool *)((char *)a + switches[i].flag) = true;
			return true;
		}
	if (option != 'c')
		return queue_filter_add(&a->filter, (enum queue_condition)(option - OPTION_FILTER),
					optarg, error);
	a->conf_file = optarg;
	return true;
}

#define CHOICE "ID...|-|FILTER|--all"
#define DONE(verb) verb " " CHOICE

const struct queue_verb_row queue_verbs[QUEUE_VERBS] = {
	[QUEUE_LIST] = {"list", "list [FILTER] [--json] [ID...|-]", SPOOL_LIST, NULL},
	[QUEUE_SHOW] = {"show", "show ID [--envelope] [--headers] [--body] [--json]", SPOOL_SHOW,
			NULL},
	[QUEUE_CHECK] = {"check", "check [--repair] [--json]", SPOOL_LIST, NULL},
	[QUEUE_FLUSH] = {"flush", DONE("flush"), SPOOL_FLUSH, "flushed"},
	[QUEUE_DELETE] = {"delete", DONE("delete"), SPOOL_DELETE, "deleted"},
	[QUEUE_HOLD] = {"hold", DONE("hold"), SPOOL_SUSPEND, "held"},
	[QUEUE_RELEASE] = {"release", DONE("release") " [--fresh] [--refilter]", SPOOL_RESUME,
			   "released"},
	[QUEUE_REQUEUE] = {"requeue", DONE("requeue"), SPOOL_REQUEUE, "requeued"},
	[QUEUE_BOUNCE] = {"bounce", DONE("bounce"), SPOOL_BOUNCE, "bounced"},
};

/* The verb, wherever it stands among the options; -1: there is none. */
static int find_verb(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		for (int v = 0; v < QUEUE_VERBS; v++)
			if (strcmp(argv[i], queue_verbs[v].name) == 0)
				return v;
	return -1;
}

static bool parse_verb(struct queue_args *a, const char *word, struct buf *error)
{
	for (int i = 0; i < QUEUE_VERBS; i++) {
		if (word && strcmp(word, queue_verbs[i].name) == 0) {
			a->verb = (enum queue_verb)i;
			return true;
		}
	}
	if (word)
		buf_printf(error,
			   "queue %s: it is one of list, show, flush, delete, hold, release, "
			   "requeue, bounce, check",
			   word);
	else
		buf_puts(error, "queue: say what to do: list, show, flush, delete, hold, release, "
				"requeue, bounce or check");
	return false;
}

/* The option that does not belong to this verb, if one is given. */
static const char *misplaced_option(const struct queue_args *a)
{
	bool change = a->verb >= QUEUE_FLUSH;
	if (a->verb != QUEUE_CHECK && a->repair)
		return "--repair belongs to check";
	if (a->verb != QUEUE_RELEASE && a->fresh)
		return "--fresh belongs to release";
	if (a->verb != QUEUE_RELEASE && a->refilter)
		return "--refilter belongs to release";
	if (a->verb != QUEUE_SHOW && a->envelope)
		return "--envelope belongs to show";
	if (a->verb != QUEUE_SHOW && a->header)
		return "--headers belongs to show";
	if (a->verb != QUEUE_SHOW && a->body)
		return "--body belongs to show";
	if (change && a->json)
		return "--json belongs to list, show and check";
	if (a->json && (a->envelope || a->header || a->body))
		return "--json shows the envelope and nothing else";
	return NULL;
}

/* The fault in the choice of messages; NULL: none. */
static const char *wrong_choice(const struct queue_args *a)
{
	int choices = (a->nid > 0) + a->filter.any + a->all;
	if (a->verb == QUEUE_CHECK && choices > 0)
		return "check reads the whole queue: no ids, no filter";
	if (a->verb == QUEUE_SHOW && (a->nid != 1 || choices != 1 || strcmp(a->id[0], "-") == 0))
		return "show takes one id";
	if (choices > 1)
		return "give ids, or a filter, or --all";
	if (a->verb >= QUEUE_FLUSH && choices == 0)
		return "say which messages: ids, a filter, or --all";
	return NULL;
}

static bool check_args(const struct queue_args *a, struct buf *error)
{
	const char *wrong = misplaced_option(a);
	if (!wrong)
		wrong = wrong_choice(a);
	if (wrong)
		buf_printf(error, "queue %s: %s", queue_verbs[a->verb].name, wrong);
	return !wrong;
}

static bool parse_options(struct queue_args *a, int argc, char **argv, struct buf *error)
{
	int option;
	bool ok = true;
	optind = 0;
	opterr = 0;
	while (ok && (option = getopt_long(argc, argv, ":c:", longs, NULL)) != -1) {
		ok = option != ':' && option != '?' && parse_option(a, option, error);
		if (option == ':' || option == '?')
			options_fault(error, option, argv);
	}
	return ok;
}

struct named {
	uint64_t id;
	UT_hash_handle hh;
};

/* A list of ids that was made of a log has one for each line of a message. */
static void drop_repeated(struct queue_args *a)
{
	struct named *all = NULL, *one, *tmp, *named = mem_alloc((size_t)a->nid * sizeof *named);
	int n = 0;
	for (int i = 0; i < a->nid; i++) {
		uint64_t id;
		bool good = ident_parse(a->id[i], &id);
		one = NULL;
		if (good)
			HASH_FIND(hh, all, &id, sizeof id, one);
		if (one)
			continue;
		named[n].id = id;
		if (good)
			HASH_ADD(hh, all, id, sizeof id, &named[n]);
		a->id[n++] = a->id[i];
	}
	a->nid = n;
	HASH_ITER(hh, all, one, tmp)
	HASH_DEL(all, one);
	free(named);
}

bool queue_args_parse(struct queue_args *a, int argc, char **argv, struct buf *error)
{
	int verb = find_verb(argc, argv);
	*a = (struct queue_args){.verb = verb < 0 ? QUEUE_VERBS : (enum queue_verb)verb};
	queue_filter_init(&a->filter);
	bool ok = parse_options(a, argc, argv, error);
	if (a->help)
		return true;
	ok = ok && parse_verb(a, argv[optind], error);
	a->nid = ok ? argc - optind - 1 : 0;
	a->id = argv + optind + 1;
	ok = ok && check_args(a, error);
	if (ok && a->nid > 1)
		drop_repeated(a);
	if (!a->envelope && !a->header && !a->body)
		a->envelope = a->header = a->body = true;
	return ok;
}

void queue_args_fini(struct queue_args *a)
{
	queue_filter_fini(&a->filter);
}
