/* SPDX-License-Identifier: ISC */
/* sluice reload: have the relay read its configuration again. */
#include "base/buf.h"
#include "cmd/operator/client.h"
#include "cmd/cmd.h"
#include "cmd/options.h"

#include <stddef.h>

static const char usage[] = "usage: sluice reload [-c FILE]\n"
			    "Have the relay read its configuration again, and reopen its log. If "
			    "the configuration has\n"
			    "a fault, it is printed, the relay keeps its settings, and the status "
			    "is 1. Changed settings\n"
			    "that take effect only at the next start are named.\n";

static const struct option longs[] = {OPTIONS_COMMON};

/* Where the file says still where the relay is. */
static void have_log_reopened(const struct options *o)
{
	struct buf unused = {0};
	struct conf *conf = conf_read_to_ask(o->conf_file, &unused);
	if (conf)
		client_try_into(conf->spool, "reopen", &unused);
	conf_unref(conf);
	buf_fini(&unused);
}

int cmd_reload(int argc, char **argv)
{
	struct options o = {.usage = usage, .shorts = "c:", .longs = longs};
	options_only(&o, argc, argv);
	/* The file says where the relay is. A fault in it is told here, and the relay not asked to read it. */
	struct conf *conf = options_conf_with(&o, CONF_WITH_KEYS | CONF_WITH_TABLES);
	if (!conf) {
		have_log_reopened(&o);
		return STATUS_REFUSED;
	}
	char *words[] = {"reload", NULL};
	int status = client_order(conf, 1, words, 0);
	conf_unref(conf);
	return status;
}
