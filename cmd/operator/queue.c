/* SPDX-License-Identifier: ISC */
/* sluice queue, mailq: the words are checked here, and done by the running relay;
 * or, where none runs, by a process of its own (offline.h). `check` reads the queue itself. */
#include "base/mem.h"
#include "cmd/operator/client.h"
#include "cmd/cmd.h"
#include "cmd/control/control_wire.h"
#include "cmd/options.h"
#include "cmd/text/queue_args.h"
#include "cmd/operator/queue_check.h"
#include "cmd/maildrop/queue_habits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
	"usage: sluice queue list   [FILTER] [--json] [ID...|-]\n"
	"       sluice queue show   ID [--envelope] [--headers] [--body] [--json]\n"
	"       sluice queue flush|hold|requeue|delete|bounce  ID...|-|FILTER|--all\n"
	"       sluice queue release  ID...|-|FILTER|--all [--fresh] [--refilter]\n"
	"       sluice queue check  [--repair] [--json]\n"
	"list:   one line for each message; with --json one object on each line.\n"
	"show:   the envelope with the state of each recipient, then headers and body.\n"
	"flush:  try again now; held mail only if it is named by its id, or by --queue hold.\n"
	"hold:   keep without attempts until it is released.\n"
	"release: try held mail now; with --fresh its lifetime starts again; with --refilter it\n"
	"        passes all filters again first, and stays on hold if they refuse it.\n"
	"requeue: release it if it is held, and try now, with the present routes.\n"
	"delete: remove, without telling the sender.\n"
	"bounce: return to the sender as undeliverable.\n"
	"A delivery that is under way is not interrupted; the command applies to what is left.\n"
	"check:  read the whole queue while no relay is running, and report its faults; with\n"
	"        --repair move damaged parts to quarantine/, and repair the queue.\n"
	"- instead of ids: the first word of each line of standard input.\n"
	"FILTER is one or more of these; a message must match all of them. If one is given "
	"several\n"
	"times, any of its values must match:\n"
	"  --queue Q      it is in incoming, active, deferred or hold\n"
	"  --from ADDR    the sender is ADDR; <> is the null sender\n"
	"  --to ADDR      a remaining recipient is ADDR\n"
	"  --domain D     a remaining recipient is in D\n"
	"  --site S       mail for such a recipient goes to this site, as in sluice dest\n"
	"  --older T      it arrived longer ago than T: 30s, 5m, 1h, 2d\n"
	"  --flow NAME    it is mail of this flow, as flows or sluice flow name it\n"
	"  --login NAME   who sent it had logged in as NAME, or is the local user NAME\n"
	"  --client A     it came from the address A, or a network such as 192.0.2.0/24\n"
	"  --reason TEXT  the latest reply for such a recipient contains TEXT\n"
	"In ADDR and D a star stands for any text: '*@shop.example', 'news@*'; .example.com is "
	"that\n"
	"domain and all its subdomains.\n";

enum { ID_MAX = 64 }; /* what is longer is none, and told so */

/* The words of a request, with what standard input has in the place of "-". */
struct words {
	char **of;
	int n;
	size_t bytes;
	char **own; /* what was read */
	int nown;
};

static void add_word(struct words *w, char *word)
{
	w->of = mem_realloc(w->of, ((size_t)w->n + 2) * sizeof *w->of);
	w->of[w->n++] = word;
	w->of[w->n] = NULL;
	w->bytes += strlen(word) + 2;
}

/* The first word of each line; so what `queue list` prints can be given back, without its last line. */
static void read_ids(struct words *w)
{
	char *line = NULL;
	size_t cap = 0;
	while (getline(&line, &cap, stdin) >= 0) {
		char *word = line + strspn(line, " \t");
		size_t len = strcspn(word, " \t\r\n");
		if (len == 0 || strncmp(word, "--", 2) == 0)
			continue;
		char *id = mem_strndup(word, len < ID_MAX ? len : ID_MAX);
		w->own = mem_realloc(w->own, ((size_t)w->nown + 1) * sizeof *w->own);
		w->own[w->nown++] = id;
		add_word(w, id);
	}
	free(line);
}

static void words_free(struct words *w)
{
	for (int i = 0; i < w->nown; i++)
		free(w->own[i]);
	free(w->own);
	free(w->of);
}

static int ask_relay(struct conf *conf, const struct queue_args *args, int argc, char **argv)
{
	struct words w = {0};
	bool reads = false;
	int status;
	for (int i = 0; i < argc; i++) {
		if (strcmp(argv[i], "-") == 0 && !reads) {
			reads = true;
			read_ids(&w);
		} else {
			add_word(&w, argv[i]);
		}
	}
	if (reads && w.nown == 0 && args->nid == 1) {
		fputs("sluice: standard input has no ids\n", stderr);
		status = STATUS_REFUSED;
	} else if (w.bytes > CONTROL_REQUEST_MAX) {
		fprintf(stderr, "sluice: these are too many ids for one order: %d\n", w.nown);
		status = STATUS_USAGE;
	} else {
		status = client_ask_queue(conf, w.n, w.of, 0);
	}
	words_free(&w);
	return status;
}

static int run_verb(const struct queue_args *args, int argc, char **argv)
{
	bool check = args->verb == QUEUE_CHECK;
	struct conf *conf = (check ? options_conf_at : options_conf_to_ask_at)(args->conf_file);
	if (!conf)
		return STATUS_REFUSED;
	int status = check ? queue_check(conf, args) : ask_relay(conf, args, argc, argv);
	conf_unref(conf);
	return status;
}

/* The fault, and how that verb is used. */
static int complain_with_usage(const struct queue_args *args, struct buf *error)
{
	fprintf(stderr, "sluice: %s\n", buf_cstr(error));
	if (args->verb == QUEUE_VERBS)
		fprintf(stderr, "usage: sluice queue "
				"list|show|flush|hold|release|requeue|delete|bounce|check ...\n");
	else
		fprintf(stderr, "usage: sluice queue %s\n", queue_verbs[args->verb].usage);
	return STATUS_USAGE;
}

int cmd_queue(int argc, char **argv)
{
	char name[] = "queue"; /* the relay's word for it */
	struct queue_args args;
	struct buf error = {0};
	argv[0] = name;
	bool ok = queue_args_parse(&args, argc, argv, &error);
	int status = STATUS_DONE;
	if (args.help)
		fputs(usage, stdout);
	else
		status = ok ? run_verb(&args, argc, argv) : complain_with_usage(&args, &error);
	queue_args_fini(&args);
	buf_fini(&error);
	return status;
}

/* As in sendmail: -q alone tries all deferred mail, -qI, -qR and -qS choose what is listed. */
static int mailq_by_habit(const char *value, const char *conf_file)
{
	struct queue_habit habit;
	int status = STATUS_USAGE;
	if (!queue_habit_read(&habit, value))
		fprintf(stderr,
			"mailq: there is no option -q%s\n"
			"usage: mailq [-q | -qIID | -qRTEXT | -qSTEXT]\n",
			value);
	else if (*value)
		status = queue_habit_list(&habit, conf_file);
	else
		status = queue_habit_flush(&habit, conf_file);
	queue_habit_free(&habit);
	return status;
}

/* sendmail's wish for more words, and for the queue of submission. */
static bool is_passed_over(const char *word)
{
	return strcmp(word, "-v") == 0 || strcmp(word, "-Ac") == 0 || strcmp(word, "-Am") == 0;
}

int cmd_mailq(int argc, char **argv)
{
	const char *conf_file = options_default_conf();
	for (int i = 1; i + 1 < argc; i++)
		if (strcmp(argv[i], "-c") == 0)
			conf_file = argv[i + 1];
	for (int i = 1; i < argc; i++)
		if (strncmp(argv[i], "-q", 2) == 0)
			return mailq_by_habit(argv[i] + 2, conf_file);
	char list[] = "list", **words = mem_zalloc(((size_t)argc + 2) * sizeof *words);
	int n = 0;
	words[n++] = argv[0];
	words[n++] = list;
	for (int i = 1; i < argc; i++)
		if (!is_passed_over(argv[i]))
			words[n++] = argv[i];
	int status = cmd_queue(n, words);
	free(words);
	return status;
}
