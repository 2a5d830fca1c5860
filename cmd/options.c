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

static _Noreturn void help(const struct options *o)
{
	fputs(o->usage, stdout);
	exit(STATUS_DONE);
}

static _Noreturn void try_help(const struct options *o)
{
	fprintf(stderr, "%.*s\n", (int)strcspn(o->usage, "\n"), o->usage);
	exit(STATUS_USAGE);
}

int options_next(struct options *o, int argc, char **argv)
{
	if (!o->begun) {
		o->begun = true;
		o->conf_file = options_default_conf();
		optind = 0;
	}
	for (;;) {
		int option = getopt_long(argc, argv, o->shorts, o->longs, NULL);
		switch (option) {
		case 'c':
			o->conf_file = optarg;
			break;
		case OPTION_HELP:
			help(o);
		case '?':
		case ':':
			try_help(o);
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
	struct buf errors;
	buf_init(&errors);
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
