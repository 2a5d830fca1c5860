/* SPDX-License-Identifier: ISC */
/* sluice config: settings in force, or by default; and the texts that are made from their table. */
#include "cmd/cmd.h"
#include "cmd/options.h"

#include <stdio.h>

static const char usage[] =
	"usage: sluice config [-c FILE] [-d] [NAME...]\n"
	"Print the settings of the configuration as NAME = VALUE, all or those named; the names\n"
	"of settings in sections are like queue.minimal_backoff_time or transport.smtp.port. The\n"
	"last part alone finds a setting in all sections.\n"
	"  -d, --defaults  print the defaults\n"
	"  --sample        print a configuration file with every setting, its default and meaning\n"
	"  --manual        print the settings as part of a manual page, in mdoc\n";

enum { SAMPLE = OPTION_OWN, MANUAL };

static const struct option longs[] = {
	{"defaults", no_argument, NULL, 'd'},
	{"sample", no_argument, NULL, SAMPLE},
	{"manual", no_argument, NULL, MANUAL},
	OPTIONS_COMMON,
};

typedef bool print_fn(const struct conf *, const char *name, struct buf *to);

static int print_named(const struct conf *conf, print_fn *print, int n, char **name, struct buf *to)
{
	int status = STATUS_DONE;
	if (n == 0)
		print(conf, NULL, to);
	for (int i = 0; i < n; i++) {
		if (!print(conf, name[i], to)) {
			fprintf(stderr, "sluice: no setting is named %s\n", name[i]);
			status = STATUS_REFUSED;
		}
	}
	return status;
}

int cmd_config(int argc, char **argv)
{
	struct options o = {.usage = usage, .shorts = "c:d", .longs = longs};
	bool defaults = false;
	int text = 0, option, status = STATUS_DONE;
	while ((option = options_next(&o, argc, argv)) != -1) {
		if (option == 'd')
			defaults = true;
		else
			text = option;
	}
	if (text && optind < argc)
		options_wrong(&o, "--sample and --manual print all settings");
	struct buf out = {0};
	if (text == SAMPLE) {
		conf_sample(&out);
	} else if (text == MANUAL) {
		conf_manual(&out);
	} else {
		struct conf *conf = defaults ? conf_defaults() : options_conf(&o);
		print_fn *print = defaults ? conf_print_default : conf_print;
		status = conf ? print_named(conf, print, argc - optind, argv + optind, &out)
			      : STATUS_REFUSED;
		conf_unref(conf);
	}
	fwrite(buf_data(&out), 1, buf_len(&out), stdout);
	buf_fini(&out);
	return fflush(stdout) == 0 ? status : STATUS_REFUSED;
}
