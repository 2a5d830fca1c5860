/* SPDX-License-Identifier: ISC */
/* sluice top: what the relay counts, live, with how fast it grows. */
#include "base/clock.h"
#include "base/conf_units.h"
#include "cmd/client.h"
#include "cmd/cmd.h"
#include "cmd/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char usage[] =
	"usage: sluice top [-c FILE] [-d TIME] [-n COUNT]\n"
	"Show what sluice stats prints, again and again, with the change a second of what only "
	"grows.\n"
	"  -d, --delay TIME   between two looks: 1s if not said, at least 100ms\n"
	"  -n, --count COUNT  end after so many looks; by default at an interrupt\n";

static const struct option longs[] = {
	{"delay", required_argument, NULL, 'd'},
	{"count", required_argument, NULL, 'n'},
	OPTIONS_COMMON,
};

/* One look: lines "NAME VALUE", as stats has them. */
struct look {
	struct buf text;
	int64_t at_us;
};

static const char *find(const struct look *l, const char *name, size_t len)
{
	const char *line = buf_len(&l->text) > 0 ? buf_cstr((struct buf *)&l->text) : NULL;
	while (line && *line) {
		if (strncmp(line, name, len) == 0 && line[len] == ' ')
			return line + len + 1;
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	return NULL;
}

static bool grows(const char *name, size_t len)
{
	size_t plain = strcspn(name, "{ ");
	plain = plain < len ? plain : len;
	return plain > 6 && strncmp(name + plain - 6, "_total", 6) == 0;
}

static void print_line(const struct look *now, const struct look *before, const char *line)
{
	size_t len = strcspn(line, "\n"), name = len;
	while (name > 0 && line[name - 1] != ' ')
		name--;
	if (name == 0)
		return;
	name--;
	const char *value = line + name + 1, *old = find(before, line, name);
	printf("%-44.*s %14.*s", (int)name, line, (int)(len - name - 1), value);
	double seconds = (double)(now->at_us - before->at_us) / 1e6;
	if (old && grows(line, name) && seconds > 0)
		printf(" %12.1f/s",
		       (double)(strtoll(value, NULL, 10) - strtoll(old, NULL, 10)) / seconds);
	putchar('\n');
}

static void print_look(const struct look *now, const struct look *before)
{
	const char *line = buf_cstr((struct buf *)&now->text);
	if (isatty(STDOUT_FILENO))
		fputs("\033[H\033[J", stdout);
	while (*line) {
		print_line(now, before, line);
		line += strcspn(line, "\n");
		line += *line == '\n';
	}
	if (!isatty(STDOUT_FILENO))
		putchar('\n');
	fflush(stdout);
}

static int watch(const struct conf *conf, int64_t delay_ms, int64_t count)
{
	struct look now = {0}, before = {0};
	char *words[] = {"stats", NULL};
	int status = STATUS_DONE;
	for (int64_t n = 0; count == 0 || n < count; n++) {
		if (n > 0)
			nanosleep(&(struct timespec){delay_ms / 1000, delay_ms % 1000 * 1000000},
				  NULL);
		struct look spare = before;
		before = now;
		now = spare;
		buf_clear(&now.text);
		status = client_ask_into(conf->spool, 1, words, &now.text);
		if (status != STATUS_DONE)
			break;
		now.at_us = clock_steady_us();
		print_look(&now, &before);
	}
	buf_fini(&now.text);
	buf_fini(&before.text);
	return status;
}

static int64_t parse_delay(const struct options *o, const char *text)
{
	int64_t ms = 0;
	struct buf why = {0};
	if (!conf_amount_parse(CONF_duration, text, &ms, &why) || ms < 100)
		options_wrong(o, "--delay %s: not a time of at least 100ms", text);
	buf_fini(&why);
	return ms;
}

int cmd_top(int argc, char **argv)
{
	struct options o = {.usage = usage, .shorts = "c:d:n:", .longs = longs};
	int64_t delay_ms = 1000, count = 0;
	for (int option; (option = options_next(&o, argc, argv)) != -1;) {
		if (option == 'd')
			delay_ms = parse_delay(&o, optarg);
		else
			count = options_number(&o, "--count", optarg, 1, INT32_MAX);
	}
	if (optind < argc)
		options_wrong(&o, "top takes no argument %s", argv[optind]);
	struct conf *conf = options_conf(&o);
	if (!conf)
		return STATUS_REFUSED;
	int status = watch(conf, delay_ms, count);
	conf_unref(conf);
	return status;
}
