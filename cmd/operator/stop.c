/* SPDX-License-Identifier: ISC */
/* sluice stop: have the relay end, and wait until it has. */
#include "base/conf_units.h"
#include "cmd/operator/client.h"
#include "cmd/cmd.h"
#include "cmd/options.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

static const char usage[] =
	"usage: sluice stop [-c FILE] [--drain] [--timeout T]\n"
	"Stop the relay, and wait until it has stopped. What was being\n"
	"delivered stays in the queue.\n"
	"  --drain      accept no new mail, and stop when all incoming and active mail is\n"
	"               delivered or deferred; deferred mail stays in the queue\n"
	"  --timeout T  with --drain: stop after this time at the latest: 30s, 5m\n";

enum { OPTION_DRAIN = OPTION_OWN, OPTION_TIMEOUT };

static const struct option longs[] = {
	{"drain", no_argument, NULL, OPTION_DRAIN},
	{"timeout", required_argument, NULL, OPTION_TIMEOUT},
	OPTIONS_COMMON,
};

static int64_t parse_timeout(const struct options *o, const char *text)
{
	int64_t ms = 0;
	struct buf why = {0};
	if (!conf_amount_parse(CONF_duration, text, &ms, &why) || ms <= 0)
		options_wrong(o, "--timeout %s: not a time, like 30s or 5m", text);
	buf_fini(&why);
	return ms;
}

int cmd_stop(int argc, char **argv)
{
	struct options o = {.usage = usage, .shorts = "c:", .longs = longs};
	bool drain = false;
	int64_t most_ms = 0;
	for (int option; (option = options_next(&o, argc, argv)) != -1;) {
		if (option == OPTION_DRAIN)
			drain = true;
		else
			most_ms = parse_timeout(&o, optarg);
	}
	if (optind < argc)
		options_wrong(&o, "stop takes no argument %s", argv[optind]);
	if (most_ms && !drain)
		options_wrong(&o, "--timeout goes with --drain");
	char limit[32], *words[] = {"stop", "--drain", limit, NULL};
	snprintf(limit, sizeof limit, "%" PRId64, most_ms);
	struct conf *conf = options_conf_to_ask(&o);
	if (!conf)
		return STATUS_REFUSED;
	int status = client_order(conf, drain ? 3 : 1, words,
				  CLIENT_UNTIL_CLOSED | (drain ? 0 : CLIENT_UNTIL_ENDED));
	conf_unref(conf);
	return status;
}
