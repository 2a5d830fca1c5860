/* SPDX-License-Identifier: ISC */
/* sluice check: say whether a configuration can be used, without changing anything of a running relay. */
#include "base/words.h"
#include "cmd/local/check_access.h"
#include "cmd/local/check_warnings.h"
#include "cmd/cmd.h"
#include "cmd/operator/client.h"
#include "cmd/options.h"
#include "cmd/text/stats_print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
	"usage: sluice check [-c FILE] [--strict]\n"
	"Read the configuration, and print its faults as FILE:LINE: what is wrong, with exit\n"
	"status 1; or print \"configuration ok\", with exit status 0. Settings that are allowed, "
	"but\n"
	"probably a mistake, are warnings on standard error. The conditions of a relay that runs\n"
	"are told there too.\n"
	"  --strict  exit status 1 if there is a warning\n";

enum { OPTION_STRICT = OPTION_OWN };

static const struct option longs[] = {
	{"strict", no_argument, NULL, OPTION_STRICT},
	OPTIONS_COMMON,
};

static bool has_user(const struct conf *conf)
{
	struct buf error = {0};
	bool has = check_access_user(conf, &error);
	if (!has)
		fprintf(stderr, "%s:%d: %s\n", conf->file, conf->user_line, buf_cstr(&error));
	buf_fini(&error);
	return has;
}

/* Conditions are no faults of the file: the relay that happens to run says what keeps it from taking or sending mail. */
static void say_conditions(const struct conf *conf)
{
	struct buf stats = {0};
	bool said = client_try_into(conf->spool, "stats", &stats);
	const char *text = said ? buf_cstr(&stats) : "";
	for (char *line; (line = words_line(&text)); free(line))
		if (strncmp(line, STATS_CONDITION, strlen(STATS_CONDITION)) == 0)
			fprintf(stderr, "the relay that runs: %s\n", line);
	buf_fini(&stats);
}

int cmd_check(int argc, char **argv)
{
	struct options o = {.usage = usage, .shorts = "c:", .longs = longs};
	bool strict = false;
	while (options_next(&o, argc, argv) != -1)
		strict = true;
	if (optind < argc)
		options_wrong(&o, "check takes no argument %s", argv[optind]);
	struct conf *conf = options_conf_with(&o, CONF_WITH_KEYS | CONF_WITH_TABLES);
	if (!conf)
		return STATUS_REFUSED;
	bool good = has_user(conf);
	int warnings = check_warnings(conf);
	say_conditions(conf);
	conf_unref(conf);
	if (!good || (warnings > 0 && strict))
		return STATUS_REFUSED;
	puts("configuration ok");
	return STATUS_DONE;
}
