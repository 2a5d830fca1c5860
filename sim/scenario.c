/* SPDX-License-Identifier: ISC */
#include "sim/scenario.h"

#include "base/conf_value.h"
#include "base/mem.h"
#include "base/tables.h"
#include "sim/scenario_rows.h"

#include <assert.h>
#include <ctype.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define ROW(type, name, text, low, high, reload, choices, sentence)                                \
	{#name, CONF_##type, text, low, high, reload, choices, sentence, offsetof(STRUCT, name)},

#define STRUCT struct scenario_simulation
static const struct conf_row simulation_rows[] = {SCENARIO_SIMULATION(ROW)};
#undef STRUCT
#define STRUCT struct scenario_redis
static const struct conf_row redis_rows[] = {SCENARIO_REDIS(ROW)};
#undef STRUCT
#define STRUCT struct scenario_arrival
static const struct conf_row arrival_rows[] = {SCENARIO_ARRIVAL(ROW)};
#undef STRUCT
#define STRUCT struct scenario_site
static const struct conf_row site_rows[] = {SCENARIO_SITE(ROW)};
#undef STRUCT
#define STRUCT struct scenario_host
static const struct conf_row host_rows[] = {SCENARIO_HOST(ROW)};
#undef STRUCT
#define STRUCT struct scenario_row
static const struct conf_row row_rows[] = {SCENARIO_ROW(ROW)};
#undef STRUCT

#define ROWS(rows) (int)(sizeof rows / sizeof rows[0]), rows

static const struct conf_section sections[] = {
	{"simulation", false, sizeof(struct scenario_simulation), ROWS(simulation_rows), ""},
	{"redis", false, sizeof(struct scenario_redis), ROWS(redis_rows), ""},
	{"arrival", true, sizeof(struct scenario_arrival), ROWS(arrival_rows), ""},
	{"site", true, sizeof(struct scenario_site), ROWS(site_rows), ""},
	{"host", true, sizeof(struct scenario_host), ROWS(host_rows), ""},
	{"row", true, sizeof(struct scenario_row), ROWS(row_rows), ""},
};

static_assert(sizeof sections / sizeof sections[0] == SCENARIO_KINDS - CONF_KINDS, "one a kind");

static const struct conf_section *section_of(int kind)
{
	assert(kind >= CONF_KINDS && kind < SCENARIO_KINDS);
	return &sections[kind - CONF_KINDS];
}

/* Of sluice.conf what bears upon the scheduler. */
static void list_sections(const struct conf_section **all)
{
	static const struct conf_section outside = {"", false, 0, 0, NULL, ""};
	for (int kind = 0; kind < SCENARIO_KINDS; kind++)
		all[kind] = kind < CONF_KINDS ? NULL : section_of(kind);
	all[CONF_KIND_GLOBAL] = &outside;
	all[CONF_KIND_TRANSPORT] = &conf_sections[CONF_KIND_TRANSPORT];
	all[CONF_KIND_ROUTE] = &conf_sections[CONF_KIND_ROUTE];
	all[CONF_KIND_QUEUE] = &conf_sections[CONF_KIND_QUEUE];
	all[CONF_KIND_FLOW] = &conf_sections[CONF_KIND_FLOW];
	all[CONF_KIND_PROVIDER] = &conf_sections[CONF_KIND_PROVIDER];
	all[CONF_KIND_SOURCE] = &conf_sections[CONF_KIND_SOURCE];
}

/* The array of a kind of section, and how many are in it. */
static void **array_of(struct scenario *s, int kind, int **n)
{
	switch (kind) {
	case SCENARIO_KIND_ARRIVAL:
		*n = &s->narrival;
		return (void **)&s->arrival;
	case SCENARIO_KIND_SITE:
		*n = &s->nsite;
		return (void **)&s->site;
	case SCENARIO_KIND_HOST:
		*n = &s->nhost;
		return (void **)&s->host;
	default:
		assert(kind == SCENARIO_KIND_ROW);
		*n = &s->nrow;
		return (void **)&s->row;
	}
}

/* A title of a host may be a range: so many hosts that are alike. */
static bool is_range(const struct conf_block *block, struct spread_range *r)
{
	*r = (struct spread_range){0};
	return block->kind == SCENARIO_KIND_HOST && spread_range(block->title, r);
}

static size_t count_sections(const struct conf_file *from, int kind)
{
	size_t n = 0;
	for (int i = 0; i < from->nblock; i++) {
		struct spread_range r;
		if (from->block[i].kind == kind)
			n += is_range(&from->block[i], &r) ? (size_t)(r.high - r.low + 1) : 1;
	}
	return n;
}

static void build_titled(struct scenario *s, int kind, const struct conf_file *from,
			 struct conf_lines *lines, struct conf_faults *faults)
{
	const struct conf_section *section = section_of(kind);
	int *n;
	void **array = array_of(s, kind, &n);
	*array = mem_zalloc((count_sections(from, kind) + 1) * section->size);
	for (int i = 0; i < from->nblock; i++) {
		const struct conf_block *block = &from->block[i];
		struct spread_range r;
		bool range = is_range(block, &r);
		for (int64_t k = r.low; block->kind == kind && k <= r.high; k++) {
			struct conf_titled *t =
				(void *)((char *)*array + (size_t)(*n)++ * section->size);
			t->title = range ? spread_range_word(block->title, &r, k)
					 : mem_strdup(block->title);
			t->line = block->line;
			conf_build_section(block, section, t, s->file, lines, faults);
		}
	}
}

static void build_single(struct scenario *s, int kind, void *to, const struct conf_file *from,
			 struct conf_lines *lines, struct conf_faults *faults)
{
	const struct conf_block none = {.kind = kind}, *block = &none;
	for (int i = 0; i < from->nblock; i++)
		if (from->block[i].kind == kind)
			block = &from->block[i];
	conf_build_section(block, section_of(kind), to, s->file, lines, faults);
}

static void build_scenario(struct scenario *s, const struct conf_file *from,
			   struct conf_faults *faults)
{
	struct conf_lines lines = {0};
	bool whole = faults->n == 0;
	s->conf = conf_build(from, s->file, &lines, faults);
	if (s->conf)
		s->conf->tables = tables_read(s->conf, &lines, faults);
	build_single(s, SCENARIO_KIND_SIMULATION, &s->simulation, from, &lines, faults);
	build_single(s, SCENARIO_KIND_REDIS, &s->redis, from, &lines, faults);
	s->nodes = s->simulation.nodes;
	s->duration = s->simulation.duration;
	for (int kind = SCENARIO_KIND_ARRIVAL; kind < SCENARIO_KINDS; kind++)
		build_titled(s, kind, from, &lines, faults);
	conf_lines_sort(&lines);
	if (whole) {
		conf_check(s->conf, &lines, faults);
		scenario_check(s, &lines, faults);
	}
	free(lines.line);
}

static struct scenario *finish_parse(struct scenario *s, struct conf_faults *faults,
				     struct buf *errors)
{
	conf_faults_say(faults, errors);
	if (faults->n > 0)
		scenario_free(&s);
	conf_faults_fini(faults);
	return s;
}

static void parse_text(struct scenario *s, const char *text, struct conf_faults *faults)
{
	const struct conf_section *all[SCENARIO_KINDS];
	struct conf_file from;
	list_sections(all);
	conf_file_parse(&from, text, s->file, all, SCENARIO_KINDS, faults);
	build_scenario(s, &from, faults);
	conf_file_fini(&from);
}

struct scenario *scenario_parse(const char *text, const char *file, struct buf *errors)
{
	struct conf_faults faults = {0};
	struct scenario *s = mem_zalloc(sizeof *s);
	s->file = mem_strdup(file);
	parse_text(s, text, &faults);
	return finish_parse(s, &faults, errors);
}

struct scenario *scenario_read(const char *file, struct buf *errors)
{
	struct conf_faults faults = {0};
	char *text = conf_file_text(file, &faults);
	struct scenario *s = NULL;
	if (text)
		s = scenario_parse(text, file, errors);
	else
		conf_faults_say(&faults, errors);
	conf_faults_fini(&faults);
	free(text);
	return s;
}

static void free_section(int kind, void *section)
{
	const struct conf_section *of = section_of(kind);
	for (int i = 0; i < of->nrow; i++)
		conf_value_free(&of->row[i], conf_place(section, &of->row[i]));
	if (of->titled)
		free(((struct conf_titled *)section)->title);
}

static void free_named(struct scenario_named *named, int n)
{
	for (int i = 0; i < n; i++)
		free(named[i].name);
	free(named);
}

static void free_derived(struct scenario *s)
{
	free_named(s->simulation.suspended, s->simulation.nsuspended);
	free_named(s->simulation.period, s->simulation.nperiod);
	free(s->simulation.column);
	for (int i = 0; i < s->narrival; i++) {
		spread_fini(&s->arrival[i].recipient_spread);
		spread_fini(&s->arrival[i].domain_spread);
		spread_fini(&s->arrival[i].size_spread);
		spread_fini(&s->arrival[i].flow_spread);
		free(s->arrival[i].hour);
		free(s->arrival[i].weekday);
	}
	for (int i = 0; i < s->nsite; i++) {
		for (int m = 0; m < s->site[i].nmx; m++)
			free(s->site[i].to[m].name);
		free(s->site[i].to);
	}
	for (int i = 0; i < s->nhost; i++) {
		free(s->host[i].span);
		free(s->host[i].limit);
		free_named(s->host[i].blocking, s->host[i].nblocked);
	}
}

void scenario_free(struct scenario **sp)
{
	struct scenario *s = *sp;
	if (!s)
		return;
	free_derived(s);
	free_section(SCENARIO_KIND_SIMULATION, &s->simulation);
	free_section(SCENARIO_KIND_REDIS, &s->redis);
	free(s->redis.span);
	for (int kind = SCENARIO_KIND_ARRIVAL; kind < SCENARIO_KINDS; kind++) {
		int *n;
		void **array = array_of(s, kind, &n);
		for (int i = 0; i < *n; i++)
			free_section(kind, (char *)*array + (size_t)i * section_of(kind)->size);
		free(*array);
	}
	conf_unref(s->conf);
	free(s->nuse);
	free(s->file);
	free(s);
	*sp = NULL;
}

/* Where the sources of transports and of flows are. */
static struct conf_uses *uses_of(struct scenario *s, int i)
{
	return i < s->conf->ntransport ? &s->conf->transport[i].uses
				       : &s->conf->flow[i - s->conf->ntransport].uses;
}

/* The others stay behind the last. */
static void take_sources(struct scenario *s, int64_t most)
{
	int n = s->conf->ntransport + s->conf->nflow;
	if (!s->nuse)
		s->nuse = mem_zalloc((size_t)n * sizeof *s->nuse);
	for (int i = 0; i < n; i++) {
		struct conf_uses *uses = uses_of(s, i);
		if (uses->n > s->nuse[i])
			s->nuse[i] = uses->n;
		uses->n = most > 0 && most < s->nuse[i] ? (int)most : s->nuse[i];
	}
}

void scenario_take_row(struct scenario *s, const struct scenario_row *row)
{
	for (int i = 0; i < s->conf->ntransport; i++) {
		struct conf_transport *t = &s->conf->transport[i];
		t->destination_concurrency_positive_feedback = row->feedback;
		t->destination_concurrency_negative_feedback = row->feedback;
	}
	take_sources(s, row->sources);
	s->duration = row->duration > 0 ? row->duration : s->simulation.duration;
	s->one_flow = row->one_flow;
	s->simulation.connection_cache = row->connection_cache;
	s->nodes = row->nodes > 0 ? row->nodes : s->simulation.nodes;
}

static const struct scenario_site *look_up(const struct scenario *s, const char *domain)
{
	for (int i = 0; i < s->nsite; i++)
		for (int d = 0; d < s->site[i].domains.n; d++)
			if (strcasecmp(s->site[i].domains.item[d], domain) == 0)
				return &s->site[i];
	return NULL;
}

const struct scenario_site *scenario_find_site(const struct scenario *s, const char *domain)
{
	const struct scenario_site *site = look_up(s, domain);
	for (const char *dot = strchr(domain, '.'); !site && dot; dot = strchr(dot + 1, '.'))
		site = look_up(s, dot);
	return site ? site : look_up(s, "*");
}

int scenario_find_host(const struct scenario *s, const char *name)
{
	for (int i = 0; i < s->nhost; i++)
		if (strcasecmp(s->host[i].title, name) == 0)
			return i;
	return -1;
}
