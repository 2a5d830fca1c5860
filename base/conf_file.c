/* SPDX-License-Identifier: ISC */
#include "base/conf_file.h"

#include "base/conf_blank.h"
#include "base/conf_scan.h"
#include "base/conf_value.h"
#include "base/file_io.h"
#include "base/mem.h"
#include "base/near.h"
#include "base/utf8.h"

#include <assert.h>
#include <confuse.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The default of every list, and nothing that one would write: what is still there afterwards was not given in
 * the file. */
#define NOT_GIVEN "\001not given\001"

enum { ROWS_MAX = 100, KINDS_MAX = 32 };

struct seen {
	const cfg_opt_t *opt;
	int line, place; /* place: among all, in the order of the file */
	bool given;	 /* in the file */
};

/* libconfuse's callbacks carry no pointer of ours; there is one reader at a time. */
static struct {
	const char *file;
	struct conf_faults *faults;
	const struct conf_section *const *sections; /* by kind; NULL: may not be in the file */
	int kinds;
	int nseen;
	struct seen *
		seen; /* every value: of each option in the order of the file, once sort_seen() has been */
	char *unknown;	  /* the name that ended the parser, */
	int unknown_line; /* and where it stands */
} reading;

static int on_value(cfg_t *cfg, cfg_opt_t *opt, const char *value, void *result)
{
	reading.seen = mem_realloc(reading.seen, (size_t)(reading.nseen + 1) * sizeof(struct seen));
	reading.seen[reading.nseen] =
		(struct seen){opt, cfg->line, reading.nseen, strcmp(value, NOT_GIVEN) != 0};
	reading.nseen++;
	*(const char **)result = value;
	return 0;
}

static bool has_row(const struct conf_section *s, const char *name, size_t len)
{
	for (int i = 0; s && i < s->nrow; i++)
		if (strncmp(s->row[i].name, name, len) == 0 && s->row[i].name[len] == '\0')
			return true;
	return false;
}

/* Of a name that is unknown where it stands, where it is a setting. */
static void add_home(struct buf *text, const char *name, size_t len)
{
	const char *between = "; it belongs ";
	if (has_row(reading.sections[CONF_KIND_GLOBAL], name, len)) {
		buf_printf(text, "%soutside of all sections", between);
		between = ", or ";
	}
	for (int kind = CONF_KIND_GLOBAL + 1; kind < reading.kinds; kind++) {
		const struct conf_section *s = reading.sections[kind];
		if (!has_row(s, name, len))
			continue;
		buf_printf(text, "%sin %s%s { }", between, s->name, s->titled ? " \"...\"" : "");
		between = ", or ";
	}
}

/* Of a name that is unknown everywhere, one like it: best of this section. */
static void add_near(struct buf *text, const char *section, const char *name)
{
	const char *near = NULL;
	for (int kind = 0; kind < reading.kinds; kind++) {
		const struct conf_section *s = reading.sections[kind];
		bool here = s && strcmp(kind == CONF_KIND_GLOBAL ? "root" : s->name, section) == 0;
		for (int i = 0; s && i < s->nrow; i++)
			if ((!near || here) && near_is(name, s->row[i].name))
				near = s->row[i].name;
		if (s && s->name && !near && near_is(name, s->name))
			near = s->name;
	}
	if (near)
		buf_printf(text, "; did you mean %s?", near);
}

static void on_error(cfg_t *cfg, const char *fmt, va_list args)
{
	struct buf text = {0};
	buf_vprintf(&text, fmt, args);
	const char *name = strchr(buf_cstr(&text), '\'');
	size_t len = name ? strcspn(name + 1, "'") : 0;
	if (len > 0 && strncmp(buf_cstr(&text), "no such option", 14) == 0) {
		size_t said = buf_len(&text);
		free(reading.unknown);
		reading.unknown = mem_strndup(name + 1, len);
		reading.unknown_line = cfg->line;
		add_home(&text, reading.unknown, len);
		if (buf_len(&text) == said)
			add_near(&text, cfg_name(cfg), reading.unknown);
	}
	conf_fault(reading.faults, reading.file, cfg->line > 0 ? cfg->line : 1, "%s",
		   buf_cstr(&text));
	buf_fini(&text);
}

static int by_option(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;
	uintptr_t one = (uintptr_t)x->opt, other = (uintptr_t)y->opt;
	return one != other ? (one > other) - (one < other) : x->place - y->place;
}

static void sort_seen(void)
{
	if (reading.nseen > 0)
		qsort(reading.seen, (size_t)reading.nseen, sizeof *reading.seen, by_option);
}

/* The first of this option or, behind it, the first of the next one. */
static int find_bound(const cfg_opt_t *opt, bool behind)
{
	int low = 0, high = reading.nseen;
	while (low < high) {
		int middle = low + (high - low) / 2;
		uintptr_t of = (uintptr_t)reading.seen[middle].opt;
		if (of < (uintptr_t)opt || (behind && of == (uintptr_t)opt))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The values of an option, n of them, in the order of the file. */
static const struct seen *find_seen(const cfg_opt_t *opt, int *n)
{
	int first = find_bound(opt, false);
	*n = find_bound(opt, true) - first;
	assert(*n >= 0 && first + *n <= reading.nseen);
	return reading.seen + first;
}

/* Where the values of an option were, newest first: a list's last is asked for with 0. */
static int line_of(const cfg_opt_t *opt, int from_end)
{
	int n;
	const struct seen *of = find_seen(opt, &n);
	return from_end < n ? of[n - 1 - from_end].line : 1;
}

static void make_options(cfg_opt_t *to, const struct conf_section *s, bool like)
{
	assert(s->nrow + CONF_KINDS < ROWS_MAX);
	for (int i = 0; i < s->nrow; i++) {
		const char *name = s->row[i].name;
		if (s->row[i].type == CONF_list)
			*to++ = (cfg_opt_t)CFG_STR_LIST_CB(name, "{\"" NOT_GIVEN "\"}", CFGF_NONE,
							   on_value);
		else
			*to++ = (cfg_opt_t)CFG_STR_CB(name, NULL, CFGF_NONE, on_value);
	}
	if (s->titled)
		*to++ = (cfg_opt_t)CFG_STR(CONF_SCAN_TITLE, NULL, CFGF_NONE);
	if (like)
		*to++ = (cfg_opt_t)CFG_STR_CB("like", NULL, CFGF_NONE, on_value);
	*to = (cfg_opt_t)CFG_END();
}

static cfg_t *make_parser(void)
{
	static cfg_opt_t options[KINDS_MAX][ROWS_MAX];
	assert(reading.kinds <= KINDS_MAX);
	for (int kind = 0; kind < reading.kinds; kind++)
		if (reading.sections[kind])
			make_options(options[kind], reading.sections[kind],
				     kind == CONF_KIND_TRANSPORT);
	cfg_opt_t *to = options[CONF_KIND_GLOBAL] + reading.sections[CONF_KIND_GLOBAL]->nrow;
	for (int kind = CONF_KIND_GLOBAL + 1; kind < reading.kinds; kind++) {
		const struct conf_section *s = reading.sections[kind];
		if (s)
			*to++ = (cfg_opt_t)CFG_SEC(s->name, options[kind],
						   s->titled ? CFGF_MULTI : CFGF_NONE);
	}
	*to = (cfg_opt_t)CFG_END();
	cfg_t *cfg = cfg_init(options[CONF_KIND_GLOBAL], CFGF_NONE);
	cfg_set_error_function(cfg, on_error);
	return cfg;
}

/* Values given before count for nothing. */
static void check_once(const cfg_opt_t *opt, const char *name, int most)
{
	int n = 0, line = 0, last = 0, all;
	const struct seen *of = find_seen(opt, &all);
	for (int i = 0; i < all; i++) {
		if (!of[i].given)
			continue;
		line = line > 0 ? line : of[i].line;
		last = of[i].line;
		n++;
	}
	if (n > most)
		conf_fault(reading.faults, reading.file, last, "%s is already there, in line %d",
			   name, line);
}

static void take_setting(struct conf_block *b, cfg_t *cfg, const struct conf_row *row)
{
	cfg_opt_t *opt = cfg_getopt(cfg, row->name);
	unsigned n = cfg_opt_size(opt), first = 0;
	bool more =
		n > 0 && row->type == CONF_list && strcmp(cfg_opt_getnstr(opt, 0), NOT_GIVEN) == 0;
	check_once(opt, row->name, (int)n - more);
	if (row->type != CONF_list && (n == 0 || !cfg_opt_getnstr(opt, 0)))
		return;
	/* Of an empty list the parser keeps no line. */
	struct conf_setting s = {.row = row, .line = n > 0 ? line_of(opt, (int)n - 1) : b->line};
	if (row->type == CONF_list && n > 0 && strcmp(cfg_opt_getnstr(opt, 0), NOT_GIVEN) == 0) {
		if (n == 1)
			return;
		s.added = true;
		first = 1;
	}
	s.text = mem_alloc((n + 1) * sizeof *s.text);
	s.lines = mem_alloc((n + 1) * sizeof *s.lines);
	for (unsigned i = first; i < n; i++) {
		s.lines[s.n] = line_of(opt, (int)(n - 1 - i));
		s.text[s.n++] = mem_strdup(cfg_opt_getnstr(opt, i));
	}
	b->setting = mem_realloc(b->setting, (size_t)(b->nsetting + 1) * sizeof *b->setting);
	b->setting[b->nsetting++] = s;
}

static char *take_title(const struct conf_section *s, cfg_t *cfg, int line)
{
	const char *given = s->titled ? cfg_getstr(cfg, CONF_SCAN_TITLE) : "";
	char *title = mem_strdup(given ? given : "");
	if (!given)
		conf_fault(reading.faults, reading.file, line, "missing title for section '%s'",
			   s->name);
	if (conf_value_controls(title))
		conf_fault(reading.faults, reading.file, line,
			   "%s \"%s\": a title must not have control characters", s->name, title);
	return title;
}

static void take_block(struct conf_file *f, cfg_t *cfg, int kind, int line)
{
	const struct conf_section *s = reading.sections[kind];
	struct conf_block b = {.kind = kind, .line = line};
	assert(line > 0);
	b.title = take_title(s, cfg, line);
	for (int i = 0; i < s->nrow; i++)
		take_setting(&b, cfg, &s->row[i]);
	if (kind == CONF_KIND_TRANSPORT) {
		cfg_opt_t *like = cfg_getopt(cfg, "like");
		check_once(like, "like", 1);
		b.like = mem_strdup(cfg_opt_getnstr(like, 0));
		b.like_line = line_of(like, 0);
	}
	f->block = mem_realloc(f->block, (size_t)(f->nblock + 1) * sizeof *f->block);
	f->block[f->nblock++] = b;
}

/* From this one on; as many as there are: none. */
static int find_head(const struct conf_scan *scan, const char *name, int from)
{
	while (from < scan->nhead && strcmp(scan->head[from].name, name) != 0)
		from++;
	return from;
}

static void take_all(struct conf_file *f, cfg_t *cfg, const struct conf_scan *scan)
{
	take_block(f, cfg, CONF_KIND_GLOBAL, 1);
	for (int kind = CONF_KIND_GLOBAL + 1; kind < reading.kinds; kind++) {
		const struct conf_section *s = reading.sections[kind];
		int head = -1;
		for (unsigned i = 0; s && i < cfg_size(cfg, s->name); i++) {
			head = find_head(scan, s->name, head + 1);
			take_block(f, cfg_getnsec(cfg, s->name, i), kind,
				   head < scan->nhead ? scan->head[head].line : 1);
		}
	}
}

/* The kind of section of which several may have one title. */
#define REPEATED "dkim"

/* The second would silently count for nothing. */
static void check_heads(const struct conf_scan *scan)
{
	for (int i = 0; i < scan->nhead; i++) {
		const struct conf_head *h = &scan->head[i];
		const struct conf_head *first = conf_scan_first(scan, h->name, h->title);
		bool quoted = h->title_end > h->title_at;
		if (first != h && strcmp(h->name, REPEATED) != 0)
			conf_fault(reading.faults, reading.file, h->line,
				   "%s%s%s%s is already there, in line %d", h->name,
				   quoted ? " \"" : "", h->title, quoted ? "\"" : "", first->line);
	}
}

static void forget_seen(void)
{
	mem_free(&reading.seen);
	reading.nseen = 0;
}

/* An unknown name ends the parser: without it the rest is read, so that all faults are told at once. */
static cfg_t *parse_all(struct conf_scan *scan)
{
	for (;;) {
		cfg_t *cfg = make_parser();
		bool good = cfg_parse_buf(cfg, buf_cstr(&scan->clean)) == CFG_SUCCESS;
		char *unknown = reading.unknown;
		reading.unknown = NULL;
		bool again = unknown && conf_blank((char *)buf_data(&scan->clean),
						   reading.unknown_line, unknown);
		free(unknown);
		if (!again) {
			if (!good && reading.faults->n == 0)
				conf_fault(reading.faults, reading.file, 1,
					   "this file can't be parsed");
			return cfg;
		}
		cfg_free(cfg);
		forget_seen();
	}
}

static bool is_titled(const char *name)
{
	for (int kind = CONF_KIND_GLOBAL + 1; kind < reading.kinds; kind++) {
		const struct conf_section *s = reading.sections[kind];
		if (s && strcmp(s->name, name) == 0)
			return s->titled;
	}
	return false;
}

void conf_file_parse(struct conf_file *f, const char *text, const char *file,
		     const struct conf_section *const *sections, int kinds,
		     struct conf_faults *faults)
{
	struct conf_scan scan;
	assert(reading.nseen == 0); /* one file at a time */
	*f = (struct conf_file){0};
	conf_scan(&scan, text, file, faults);
	reading.file = file;
	reading.faults = faults;
	reading.sections = sections;
	reading.kinds = kinds;
	check_heads(&scan);
	conf_scan_move_titles(&scan, is_titled);
	if (faults->n == 0) {
		cfg_t *cfg = parse_all(&scan);
		sort_seen();
		take_all(f, cfg, &scan);
		cfg_free(cfg);
	}
	conf_scan_fini(&scan);
	forget_seen();
}

void conf_file_parse_whole(struct conf_file *f, const char *text, const char *file,
			   struct conf_faults *faults)
{
	const struct conf_section *all[CONF_KINDS];
	for (int kind = 0; kind < CONF_KINDS; kind++)
		all[kind] = &conf_sections[kind];
	conf_file_parse(f, text, file, all, CONF_KINDS, faults);
}

void conf_file_read(struct conf_file *f, const char *file, struct conf_faults *faults)
{
	*f = (struct conf_file){0};
	char *text = conf_file_text(file, faults);
	if (text && text[strspn(text, " \t\r\n")] == '\0')
		conf_fault(faults, file, 1, "is empty");
	else if (text)
		conf_file_parse_whole(f, text, file, faults);
	free(text);
}

void conf_file_fini(struct conf_file *f)
{
	for (int i = 0; i < f->nblock; i++) {
		struct conf_block *b = &f->block[i];
		for (int j = 0; j < b->nsetting; j++) {
			for (int k = 0; k < b->setting[j].n; k++)
				free(b->setting[j].text[k]);
			free(b->setting[j].text);
			free(b->setting[j].lines);
		}
		free(b->setting);
		free(b->title);
		free(b->like);
	}
	free(f->block);
	*f = (struct conf_file){0};
}

/* Closes it, where it is not NULL; else errno says why. */
static char *read_text(FILE *in, const char *file, struct conf_faults *faults)
{
	struct buf text = {0};
	size_t n = 1;
	while (in && n > 0) {
		n = fread(buf_reserve(&text, 1 << 16), 1, 1 << 16, in);
		buf_commit(&text, n);
	}
	bool good = in && !ferror(in);
	if (!good)
		conf_fault(faults, file, CONF_LINE_NONE, "can't be read: %s", strerror(errno));
	if (in)
		fclose(in);
	buf_consume(&text, utf8_mark(buf_cstr(&text)));
	size_t len;
	char *bytes = buf_steal(&text, &len);
	if (good && strlen(bytes) != len) {
		conf_fault(faults, file, 1, "has a NUL in it");
		good = false;
	}
	if (!good) {
		free(bytes);
		return NULL;
	}
	return bytes;
}

char *conf_file_text(const char *file, struct conf_faults *faults)
{
	return read_text(fopen(file, "re"), file, faults);
}

char *conf_file_named_text(const char *file, struct conf_faults *faults)
{
	return read_text(file_open(file), file, faults);
}
