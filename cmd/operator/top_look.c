/* SPDX-License-Identifier: ISC */
#include "cmd/operator/top_look.h"

#include "base/clock.h"
#include "base/mem.h"
#include "cmd/operator/client.h"
#include "cmd/cmd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIELDS = 12, NAME = 120 };

void top_look_init(struct top_look *l)
{
	*l = (struct top_look){0};
}

void top_look_fini(struct top_look *l)
{
	buf_fini(&l->stats);
	buf_fini(&l->dest);
	free(l->site);
	top_look_init(l);
}

static const char *text_of(const struct buf *b)
{
	return buf_len(b) > 0 ? buf_cstr((struct buf *)b) : "";
}

double top_look_value(const struct top_look *l, const char *name)
{
	size_t len = strlen(name);
	for (const char *line = text_of(&l->stats); *line; line += *line == '\n') {
		if (strncmp(line, name, len) == 0 && line[len] == ' ')
			return strtod(line + len + 1, NULL);
		line += strcspn(line, "\n");
	}
	return 0;
}

double top_look_sum(const struct top_look *l, const char *prefix)
{
	double sum = 0;
	size_t len = strlen(prefix);
	for (const char *line = text_of(&l->stats); *line; line += *line == '\n') {
		size_t end = strcspn(line, "\n"), value = end;
		while (value > 0 && line[value - 1] != ' ')
			value--;
		if (strncmp(line, prefix, len) == 0)
			sum += strtod(line + value, NULL);
		line += end;
	}
	return sum;
}

static double seconds_since(const struct top_look *l, const struct top_look *before)
{
	return before->at_us > 0 ? (double)(l->at_us - before->at_us) / 1e6 : 0;
}

double top_look_rate(const struct top_look *l, const struct top_look *before, const char *prefix)
{
	double s = seconds_since(l, before);
	return s > 0 ? (top_look_sum(l, prefix) - top_look_sum(before, prefix)) / s : 0;
}

double top_look_mean(const struct top_look *l, const struct top_look *before, const char *histogram,
		     const char *labels)
{
	char sum[NAME], count[NAME];
	snprintf(sum, sizeof sum, "%s_sum%s", histogram, labels);
	snprintf(count, sizeof count, "%s_count%s", histogram, labels);
	double n = top_look_value(l, count) - top_look_value(before, count);
	if (seconds_since(l, before) <= 0 || n <= 0)
		return -1;
	return (top_look_value(l, sum) - top_look_value(before, sum)) / n;
}

static const struct top_site *same_site(const struct top_look *l, const struct top_site *s)
{
	for (int i = 0; i < l->nsite; i++)
		if (strcmp(l->site[i].key, s->key) == 0)
			return &l->site[i];
	return NULL;
}

/* A line, whose tabs become ends. */
static void add_site(struct top_look *l, char *line)
{
	char *field[FIELDS];
	for (int i = 0; i < FIELDS; i++) {
		field[i] = line;
		line += strcspn(line, "\t");
		line += *line != '\0' ? (*line = '\0', 1) : 0;
	}
	l->site = mem_realloc(l->site, ((size_t)l->nsite + 1) * sizeof *l->site);
	l->site[l->nsite++] = (struct top_site){.name = field[0],
						.state = field[2],
						.tried_in_s = strtod(field[3], NULL),
						.window = atoll(field[4]),
						.busy = atoll(field[6]),
						.waiting = atoll(field[7]),
						.deferred = atoll(field[8]),
						.replies = atoll(field[9]),
						.last = field[10],
						.key = field[11],
						.rate = -1};
}

static void take_sites(struct top_look *l, const struct top_look *before)
{
	char *line = buf_len(&l->dest) > 0 ? (char *)buf_cstr(&l->dest) : NULL;
	double s = seconds_since(l, before);
	while (line && *line) {
		char *end = line + strcspn(line, "\n"), *next = end + (*end == '\n');
		*end = '\0';
		add_site(l, line);
		line = next;
	}
	for (int i = 0; i < l->nsite && s > 0; i++) {
		const struct top_site *was = same_site(before, &l->site[i]);
		int64_t old = was ? was->replies : 0;
		if (l->site[i].replies >= old)
			l->site[i].rate = (double)(l->site[i].replies - old) / s;
	}
}

int top_look_take(struct top_look *l, const struct conf *conf, const struct top_look *before)
{
	char stats[] = "stats", all[] = "--all", dest[] = "dest", list[] = "list",
	     tabs[] = "--tabs";
	char *counters[] = {stats, all, NULL}, *sites[] = {dest, list, tabs, NULL};
	top_look_fini(l);
	int status = client_ask_into(conf->spool, 2, counters, &l->stats);
	if (status == STATUS_DONE)
		status = client_ask_into(conf->spool, 3, sites, &l->dest);
	l->at_us = clock_steady_us();
	if (status == STATUS_DONE)
		take_sites(l, before);
	return status;
}
