/* SPDX-License-Identifier: ISC */
/* sluice node: the words are checked here, and done by the running relay. */
#include "cmd/cmd.h"
#include "cmd/operator/client.h"
#include "cmd/options.h"

#include <string.h>

static const char usage[] =
	"usage: sluice node list [--json]\n"
	"list:    the nodes of the cluster, a line each: state, version, how long ago it was\n"
	"         seen, messages accepted since its start, messages in its queue.\n";

struct node_args {
	bool json, help, list;
	const char *conf_file;
};

/* False: it is not known. */
static bool take(struct node_args *a, int argc, char **argv, int *i)
{
	const char *word = argv[*i];
	if (strcmp(word, "--json") == 0)
		a->json = true;
	else if (strcmp(word, "--help") == 0)
		a->help = true;
	else if (strcmp(word, "list") == 0 && !a->list)
		a->list = true;
	else if (strncmp(word, "--config=", 9) == 0)
		a->conf_file = word + 9;
	else if ((strcmp(word, "-c") == 0 || strcmp(word, "--config") == 0) && *i + 1 < argc)
		a->conf_file = argv[++*i];
	else
		return false;
	return true;
}

static int run(const struct node_args *a)
{
	char node[] = "node", list[] = "list", json[] = "--json";
	char *words[] = {node, list, a->json ? json : NULL, NULL};
	struct conf *conf = options_conf_at(a->conf_file);
	if (!conf)
		return STATUS_REFUSED;
	int status = client_ask(conf->spool, a->json ? 3 : 2, words, false);
	conf_unref(conf);
	return status;
}

int cmd_node(int argc, char **argv)
{
	struct node_args a = {0};
	struct buf error = {0};
	bool ok = true;
	int status;
	for (int i = 1; i < argc && ok; i++) {
		ok = take(&a, argc, argv, &i);
		if (!ok)
			buf_printf(&error, "node: %s is neither list nor an option", argv[i]);
	}
	if (!options_said(usage, a.help, ok, &error, &status))
		status = run(&a);
	buf_fini(&error);
	return status;
}
