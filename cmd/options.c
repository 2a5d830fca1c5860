/* SPDX-License-Identifier: ISC */
#include "cmd/options.h"

#include "cmd/cmd.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *options_default_conf(void)
{
	const char *file = getenv("SLUICE_CONF");
	return file && *file ? file : "/etc/sluice/sluice.conf";
}

/* Where one part of the output found no room, the last may have found some. */
int options_printed(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	fputs("sluice: standard output takes not all that is printed\n", stderr);
	return status == STATUS_DONE ? STATUS_REFUSED : status;
}

static _Noreturn void exit_with_help(const struct options *o)
{
	fputs(o->usage, stdout);
	exit(options_printed(STATUS_DONE));
}

static _Noreturn void try_help(const struct options *o)
{
	fprintf(stderr, "%.*s\n", (int)strcspn(o->usage, "\n"), o->usage);
	exit(STATUS_USAGE);
}

void options_fault(struct buf *error, int option, char **argv)
{
	const char *word = argv[optind - 1], *value = strchr(word, '=');
	bool is_long = strncmp(word, "--", 2) == 0, is_short = optopt > 0 && optopt < 256;
	char letter[3] = {'-', (char)optopt, '\0'};
	if (option == ':')
		buf_printf(error, "%s wants a value", is_long || !is_short ? word : letter);
	else if (is_long && value && optopt > 0)
		buf_printf(error, "%.*s takes no value", (int)(value - word), word);
	else
		buf_printf(error, "there is no option %s", is_short ? letter : word);
}

static void begin_options(struct options *o)
{
	o->begun = true;
	o->conf_file = options_default_conf();
	snprintf(o->with_colon, sizeof o->with_colon, ":%s", o->shorts);
	optind = 0;
	opterr = 0;
}

static _Noreturn void wrong_option(const struct options *o, int option, char **argv)
{
	struct buf error = {0};
	options_fault(&error, option, argv);
	options_wrong(o, "%s", buf_cstr(&error));
}

int options_next(struct options *o, int argc, char **argv)
{
	if (!o->begun)
		begin_options(o);
	for (;;) {
		int option = getopt_long(argc, argv, o->with_colon, o->longs, NULL);
		switch (option) {
		case 'c':
			o->conf_file = optarg;
			break;
		case OPTION_HELP:
			exit_with_help(o);
		case '?':
		case ':':
			wrong_option(o, option, argv);
		default:
			return option;
		}
	}
}

void options_only(struct options *o, int argc, char **argv)
{
	if (options_next(o, argc, argv) != -1)
		try_help(o);
	if (optind < argc)
		options_wrong(o, "%s takes no argument %s", argv[0], argv[optind]);
}

void options_wrong(const struct options *o, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	fputs("sluice: ", stderr);
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
	va_end(args);
	try_help(o);
}

struct conf *options_conf_with(const struct options *o, unsigned with)
{
	struct buf errors = {0};
	struct conf *conf = conf_read_with(o->conf_file, with, &errors);
	if (!conf)
		fputs(buf_cstr(&errors), stderr);
	buf_fini(&errors);
	return conf;
}

struct conf *options_conf(const struct options *o)
{
	return options_conf_with(o, 0);
}

struct conf *options_conf_at(const char *file)
{
	return options_conf(&(struct options){.conf_file = file ? file : options_default_conf()});
}

struct conf *options_conf_to_ask(const struct options *o)
{
	struct buf errors = {0};
	struct conf *conf = conf_read_to_ask(o->conf_file, &errors);
	fputs(buf_cstr(&errors), stderr);
	if (conf && conf->faulty)
		fputs("sluice: warning: with this neither reload nor start is possible; the relay "
		      "that runs is asked all the same\n",
		      stderr);
	buf_fini(&errors);
	return conf;
}

struct conf *options_conf_to_ask_at(const char *file)
{
	return options_conf_to_ask(
		&(struct options){.conf_file = file ? file : options_default_conf()});
}

bool options_said(const char *usage, bool help, bool ok, struct buf *error, int *status)
{
	*status = help || ok ? STATUS_DONE : STATUS_USAGE;
	if (help)
		fputs(usage, stdout);
	else if (!ok)
		fprintf(stderr, "sluice: %s\n%.*s\n", buf_cstr(error), (int)strcspn(usage, "\n"),
			usage);
	return help || !ok;
}

int64_t options_number(const struct options *o, const char *name, const char *text, int64_t low,
		       int64_t high)
{
	char *end;
	errno = 0;
	long long n = strtoll(text, &end, 10);
	if (errno != 0 || end == text || *end || n < low || n > high)
		options_wrong(o, "%s: %s is not a number from %lld to %lld", name, text,
			      (long long)low, (long long)high);
	return n;
}
