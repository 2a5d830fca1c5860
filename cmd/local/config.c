/* SPDX-License-Identifier: ISC */
/* sluice config: settings in force, or by default; and the texts that are made from their table. */
#include "base/conf_value.h"
#include "cmd/cmd.h"
#include "cmd/options.h"

#include <stdio.h>
#include <string.h>

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

static void put_default(const struct conf_row *row, struct buf *to)
{
	union {
		int64_t number;
		char *text;
		struct conf_list list;
		struct conf_rate rate;
		struct conf_feedback feedback;
	} place;
	memset(&place, 0, sizeof place);
	conf_value_default(row, &place);
	conf_value_print(row, &place, to);
	conf_value_free(row, &place);
}

static bool is_section(const char *name)
{
	for (int kind = CONF_KIND_GLOBAL + 1; kind < CONF_KINDS; kind++)
		if (strcmp(name, conf_sections[kind].name) == 0)
			return true;
	return false;
}

/* Is the row named: SECTION.NAME, the section, or the last part? NULL: all are. */
static bool is_named(const struct conf_section *s, const struct conf_row *row, const char *name)
{
	size_t len = strlen(s->name);
	if (!name || strcmp(name, s->name) == 0)
		return true;
	if (strncmp(name, s->name, len) == 0 && name[len] == '.')
		return strcmp(name + len + 1, row->name) == 0;
	return strcmp(name, row->name) == 0 && !is_section(name);
}

/* Of sections of which there is none by default. */
static bool print_untitled(const struct conf *conf, const char *name, struct buf *to)
{
	bool found = false;
	for (int kind = CONF_KIND_GLOBAL + 1; kind < CONF_KINDS; kind++) {
		const struct conf_section *s = &conf_sections[kind];
		for (int i = 0; i < s->nrow && conf_count(conf, (enum conf_kind)kind) == 0; i++) {
			if (!is_named(s, &s->row[i], name))
				continue;
			found = true;
			buf_printf(to, "%s.%s = ", s->name, s->row[i].name);
			put_default(&s->row[i], to);
			buf_puts(to, "\n");
		}
	}
	return found;
}

static bool print_settings(const struct conf *conf, bool defaults, const char *name, struct buf *to)
{
	bool found = conf_print(conf, name, to);
	return (defaults && print_untitled(conf, name, to)) || found;
}

static int print_named(const struct conf *conf, bool defaults, int n, char **name, struct buf *to)
{
	int status = STATUS_DONE;
	if (n == 0)
		print_settings(conf, defaults, NULL, to);
	for (int i = 0; i < n; i++) {
		if (!print_settings(conf, defaults, name[i], to)) {
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
	struct buf out;
	buf_init(&out);
	if (text == SAMPLE) {
		conf_sample(&out);
	} else if (text == MANUAL) {
		conf_manual(&out);
	} else {
		struct conf *conf = defaults ? conf_defaults() : options_conf(&o);
		status = conf ? print_named(conf, defaults, argc - optind, argv + optind, &out)
			      : STATUS_REFUSED;
		conf_unref(conf);
	}
	fwrite(buf_data(&out), 1, buf_len(&out), stdout);
	buf_fini(&out);
	return fflush(stdout) == 0 ? status : STATUS_REFUSED;
}
