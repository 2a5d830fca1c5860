/* SPDX-License-Identifier: ISC */
#include "cluster/cluster.h"
#include "cmd/cmd.h"
#include "cmd/options.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct command {
	const char *name, *arguments, *summary;
	int (*run)(int argc, char **argv);
} commands[] = {
	{"serve", "[-c FILE]", "run the relay in the foreground", cmd_serve},
	{"check", "[-c FILE] [--strict]", "check the configuration", cmd_check},
	{"config", "[-c FILE] [-d] [NAME...]", "print settings", cmd_config},
	{"sendmail", "[-t] [-i] [-f FROM] [RCPT...]", "submit a message from standard input",
	 cmd_sendmail},
	{"queue", "list|show|flush|hold|release|requeue|delete|bounce|check",
	 "show the queue, and change it", cmd_queue},
	{"route", "[--from A] [--json] ADDRESS...", "show what would happen to mail, and why",
	 cmd_route},
	{"tls", "[--json] DOMAIN|ADDRESS|HOST...", "what next hops must prove, and whether they do",
	 cmd_tls},
	{"dkim", "keygen|check", "keys for signing mail, and their records in the DNS", cmd_dkim},
	{"dest", "list|show|suspend|resume|reset", "show destinations, and suspend them", cmd_dest},
	{"verify", "[--from A] [--json] ADDRESS", "ask the next hop whether it takes a recipient",
	 cmd_verify},
	{"suppress", "list|add|forget [ADDRESS]", "recipients that hosts do not know",
	 cmd_suppress},
	{"login", "[--from A] [--test] NEXT-HOP", "get a token for a next hop, or try its login",
	 cmd_login},
	{"flow", "list|show|suspend|resume|reset", "show whose mail waits, and suspend it",
	 cmd_flow},
	{"user", "list|show|suspend|resume|reset", "show logins, and suspend them", cmd_user},
	{"milter", "list|show [NAME] [--json]", "filters: whether they answer, and what",
	 cmd_milter},
	{"node", "list|drain|adopt|retire|leave", "the machines of the cluster", cmd_node},
	{"shape", "[-s] [-p] [-l] [QUEUE...]", "which destinations mail waits for, since when",
	 cmd_shape},
	{"explain", "ID|SITE [--json]", "what holds mail back, and until when", cmd_explain},
	{"trace", "ADDRESS|ID|MESSAGE-ID", "the story of a message, from log and queue", cmd_trace},
	{"report", "[--day DAY] [--json]", "a day in figures, from the log", cmd_report},
	{"stats", "[--json|--all]", "print the counters", cmd_stats},
	{"top", "[-d TIME] [-n COUNT]", "the same, live, with rates", cmd_top},
	{"reload", "", "have the relay read its configuration again", cmd_reload},
	{"restart", "", "replace the relay, without refusing a client", cmd_restart},
	{"stop", "[--drain] [--timeout T]", "stop the relay", cmd_stop},
	{"import-postfix", "[MAIN.CF]", "write a configuration that does what Postfix's does",
	 cmd_import_postfix},
	{"sink", "[-l ADDR:PORT] [-d DIR] ...", "receive mail, for tests", cmd_sink},
	{"passwd", "[-f FILE] [-d] LOGIN", "change logins and their passwords", cmd_passwd},
	{"sim", "SCENARIO [--seed N] [--json]", "run the scheduler under a virtual clock", cmd_sim},
};

enum { COMMANDS = sizeof commands / sizeof *commands, ARGUMENTS_WIDTH = 30 };

static void print_commands(FILE *to)
{
	fputs("usage: sluice COMMAND [ARGUMENT...]\n\n", to);
	for (int i = 0; i < COMMANDS; i++) {
		bool fits = strlen(commands[i].arguments) <= ARGUMENTS_WIDTH;
		fprintf(to, "  %-14s %-*s", commands[i].name, fits ? ARGUMENTS_WIDTH : 0,
			commands[i].arguments);
		if (!fits)
			fprintf(to, "\n%*s", 2 + 14 + 1 + ARGUMENTS_WIDTH, "");
		fprintf(to, " %s\n", commands[i].summary);
	}
	fputs("\nsluice COMMAND --help says more. Every command takes -c FILE, the configuration:\n"
	      "by default $SLUICE_CONF, or else /etc/sluice/sluice.conf. sluice --version prints\n"
	      "the version.\n",
	      to);
}

static const char *base_name(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;
	return slash ? slash + 1 : path ? path : "sluice";
}

/* Whoever starts us with one of them closed would have the next file or socket take its number, and be sent
 * what is meant for people. These take nothing, and give nothing, as one that is closed. */
static void close_gaps(void)
{
	static const int flags[] = {O_WRONLY, O_RDONLY, O_RDONLY};
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", flags[fd]) != fd)
			exit(STATUS_REFUSED);
}

static int run_command(int argc, char **argv)
{
	for (int i = 0; i < COMMANDS; i++)
		if (strcmp(argv[0], commands[i].name) == 0)
			return options_printed(commands[i].run(argc, argv));
	fprintf(stderr, "sluice: unknown command %s; try sluice --help\n", argv[0]);
	return STATUS_USAGE;
}

static int print_help(char *command)
{
	char help[] = "--help", *words[] = {command, help, NULL};
	return run_command(2, words);
}

int main(int argc, char **argv)
{
	close_gaps();
	const char *called = base_name(argv[0]);
	if (strcmp(called, "sendmail") == 0)
		return cmd_sendmail(argc, argv);
	if (strcmp(called, "mailq") == 0)
		return options_printed(cmd_mailq(argc, argv));
	if (strcmp(called, "newaliases") == 0)
		return cmd_newaliases(argc, argv);
	if (argc < 2) {
		print_commands(stderr);
		return STATUS_USAGE;
	}
	const char *word = argv[1];
	if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) {
		printf("sluice " SLUICE_VERSION "%s\n",
		       cluster_built() ? "" : ", without its cluster");
		return options_printed(STATUS_DONE);
	}
	bool help =
		strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0;
	if (help && argc > 2)
		return print_help(argv[2]);
	if (help) {
		print_commands(stdout);
		return options_printed(STATUS_DONE);
	}
	return run_command(argc - 1, argv + 1);
}
