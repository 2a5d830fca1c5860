/* SPDX-License-Identifier: ISC */
/* sluice import-postfix: a configuration from Postfix's main.cf, and what was left out of it. */
#include "base/address_pattern.h"
#include "base/conf_faults.h"
#include "base/conf_units.h"
#include "base/conf_value.h"
#include "base/mem.h"
#include "base/netlist.h"
#include "base/words.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "cmd/local/postfix_conf.h"
#include "cmd/local/postfix_master.h"
#include "cmd/local/postfix_restrictions.h"
#include "cmd/local/postfix_settings.h"
#include "cmd/local/postfix_table.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char usage[] =
	"usage: sluice import-postfix [MAIN.CF]\n"
	"Write a configuration that does what this main.cf says to standard output, and what was\n"
	"left out, and why, to standard error, and behind the configuration as comments. The\n"
	"default is /etc/postfix/main.cf. Of a master.cf beside it is said what to write: that,\n"
	"and the tables, translate yourself.\n";

static const struct option longs[] = {OPTIONS_COMMON};

enum form {
	FORM_text,
	FORM_number,
	FORM_flag,
	FORM_choice,
	FORM_yes,
	FORM_rate,
	FORM_address,
	FORM_feedback,
	FORM_size,
	FORM_seconds,
	FORM_hours,
	FORM_days,
	FORM_list,
	FORM_networks,
	FORM_tables,
	FORM_relay,
	FORM_listener,
};

struct import {
	const char *postfix, *name;
	enum conf_kind kind;
	enum form form;
	const char *unset; /* Postfix's default, or NULL: it is ours */
};

static const struct import imports[] = {
#define X(postfix, kind, name, form, unset) {postfix, name, CONF_KIND_##kind, FORM_##form, unset},
	POSTFIX_IMPORT(X)
#undef X
};

enum { IMPORTS = sizeof imports / sizeof *imports };

struct job {
	const char *file;
	struct postfix_conf *from;
	struct buf section[CONF_KINDS];
	struct buf notes;    /* a line each */
	bool named[IMPORTS]; /* main.cf has it */
	bool done[IMPORTS];
	bool tables; /* some were taken over as they are */
};

static void add_note(struct job *j, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void add_note(struct job *j, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	buf_vprintf(&j->notes, fmt, args);
	va_end(args);
	buf_puts(&j->notes, "\n");
}

static void leave_out(struct job *j, const struct postfix_setting *s, const char *why)
{
	add_note(j, "%s:%d: %s = %s: left out: %s", j->file, s->line, s->name, s->value, why);
}

static const struct conf_row *row_of(const struct import *m)
{
	const struct conf_section *s = &conf_sections[m->kind];
	for (int i = 0; i < s->nrow; i++)
		if (strcmp(s->row[i].name, m->name) == 0)
			return &s->row[i];
	return NULL;
}

/* --- values */

/* "4h", or "5" in the unit that Postfix takes it in; weeks are days to us. */
static void put_time(struct buf *to, const char *text, char unit)
{
	char *end;
	long long n = strtoll(text, &end, 10);
	if (*end == 'w')
		buf_printf(to, "%lldd", n * 7);
	else if (end > text && *end == '\0' && n > 0)
		buf_printf(to, "%lld%c", n, unit);
	else
		buf_puts(to, text);
}

/* A word of Postfix's for which we have another. */
struct otherwise {
	const char *postfix, *word, *ours;
	const char *why; /* NULL: it is the same */
};

static const struct otherwise *find_otherwise(const struct import *m, const char *word)
{
	static const struct otherwise words[] = {
#define X(postfix, word, ours, why) {postfix, word, ours, why},
		POSTFIX_OTHERWISE(X)
#undef X
	};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strcmp(words[i].postfix, m->postfix) == 0 &&
		    strcasecmp(words[i].word, word) == 0)
			return &words[i];
	return NULL;
}

/* A value in our terms; where it has none, set_value() says so. */
static void translate_value(const struct import *m, const char *text, struct buf *to)
{
	const struct otherwise *word = find_otherwise(m, text);
	switch (m->form) {
	case FORM_seconds:
		put_time(to, text, 's');
		break;
	case FORM_hours:
		put_time(to, text, 'h');
		break;
	case FORM_days:
		put_time(to, text, 'd');
		break;
	case FORM_flag:
		buf_puts(to, strcasecmp(text, "yes") == 0 ? "true" : "false");
		break;
	case FORM_rate:
		if (strcmp(text, "0") != 0)
			buf_printf(to, "%s/m", text);
		break;
	default:
		buf_puts(to, word ? word->ours : text);
	}
}

/* Postfix completes an address; in Debian myorigin is a file that has the name. */
static void complete_address(const struct job *j, const char *text, struct buf *to)
{
	struct buf origin = {0};
	if (!postfix_conf_expand(j->from, "$myorigin", &origin) || *buf_cstr(&origin) == '/') {
		buf_clear(&origin);
		postfix_conf_expand(j->from, "$myhostname", &origin);
	}
	buf_printf(to, *text && !strchr(text, '@') ? "%s@%s" : "%s", text, buf_cstr(&origin));
	buf_fini(&origin);
}

/* False: `check` would refuse it, and why says so. */
static bool is_value_of_ours(const struct import *m, const char *text, struct buf *why)
{
	if (m->form == FORM_choice && !find_otherwise(m, text))
		buf_printf(why, "%s is no word that sluice knows: see %s", text, m->name);
	else if (m->form == FORM_address && strpbrk(text, " \t,"))
		buf_puts(why, "it is one address here: an alias stands for several");
	else
		return true;
	return false;
}

/* One value of Postfix may be several settings of ours. */
static bool set_value(const struct conf_row *row, void *place, const char *text, struct buf *why)
{
	if (row->type != CONF_list)
		return conf_value_set(row, place, text, why);
	if (*text)
		conf_list_add(place, text);
	return true;
}

/* One that is no list to Postfix. False: it is no value of ours, and why says so. */
static bool put_value(struct job *j, const struct import *m, const char *text, struct buf *why)
{
	const struct conf_row *row = row_of(m);
	union {
		int64_t align;
		char bytes[64];
	} place = {0};
	struct buf ours = {0};
	if (m->form == FORM_address)
		complete_address(j, text, &ours);
	else
		translate_value(m, text, &ours);
	bool ok = is_value_of_ours(m, text, why) && set_value(row, &place, buf_cstr(&ours), why);
	if (ok) {
		buf_printf(&j->section[m->kind], "%s = ", m->name);
		conf_value_print(row, &place, &j->section[m->kind]);
		buf_puts(&j->section[m->kind], "\n");
	}
	conf_value_free(row, &place);
	buf_fini(&ours);
	return ok;
}

/* --- lists */

static char *next_word(char **at)
{
	char *word = *at + strspn(*at, " \t,");
	size_t len = strcspn(word, " \t,");
	*at = word + len + (word[len] != '\0');
	word[len] = '\0';
	return *word ? word : NULL;
}

/* A network without the brackets that Postfix puts around IPv6. */
static bool add_network(char *word, struct conf_list *to, struct buf *why)
{
	struct net n;
	char *w = word;
	for (char *c = word; *c; c++)
		if (*c != '[' && *c != ']')
			*w++ = *c;
	*w = '\0';
	if (net_parse(word, &n)) {
		conf_list_add(to, word);
		return true;
	}
	buf_printf(why, "%s is not a network", word);
	return false;
}

/* A file counts as if its words stood in main.cf. */
static bool add_networks_of(const char *file, struct conf_list *to, struct buf *why)
{
	FILE *in = fopen(file, "re");
	char *line = NULL;
	size_t size = 0;
	bool ok = in != NULL;
	if (!in)
		buf_printf(why, "%s: %s", file, strerror(errno));
	while (ok && getline(&line, &size, in) >= 0) {
		char *at = line;
		line[strcspn(line, "\r\n")] = '\0';
		if (line[strspn(line, " \t")] == '#')
			continue;
		for (char *word; ok && (word = next_word(&at));)
			ok = add_network(word, to, why);
	}
	if (in)
		fclose(in);
	free(line);
	return ok;
}

static bool has_protocol(const struct job *j, const char *name)
{
	const struct postfix_setting *s = postfix_conf_find(j->from, "inet_protocols");
	return !s || strstr(s->value, "all") || strstr(s->value, name);
}

static void add_port(struct conf_list *to, const char *address)
{
	char *with_port =
		mem_printf(strchr(address, ':') && *address != '[' ? "[%s]:25" : "%s:25", address);
	if (!conf_list_has(to, with_port))
		conf_list_add(to, with_port);
	free(with_port);
}

static bool add_interface(const struct job *j, const char *word, struct conf_list *to,
			  struct buf *why)
{
	bool all = strcmp(word, "all") == 0,
	     loopback = strcmp(word, "loopback-only") == 0 || strcmp(word, "localhost") == 0;
	if (!all && !loopback) {
		if (!strpbrk(word, "0123456789") ||
		    strspn(word, "0123456789abcdef.:[]") != strlen(word)) {
			buf_printf(why, "%s%s is a name: give its addresses",
				   buf_len(why) > 0 ? "; " : "", word);
			return false;
		}
		add_port(to, word);
		return true;
	}
	if (has_protocol(j, "ipv4"))
		add_port(to, all ? "0.0.0.0" : "127.0.0.1");
	if (has_protocol(j, "ipv6"))
		add_port(to, all ? "[::]" : "[::1]");
	return true;
}

/* A port may be the name of a service to Postfix. */
static char *number_port(const char *word)
{
	static const struct {
		const char *name;
		int port;
	} services[] = {{"smtp", 25}, {"smtps", 465}, {"submissions", 465}, {"submission", 587}};
	const char *colon = strrchr(word, ':');
	for (size_t i = 0; colon && i < sizeof services / sizeof *services; i++)
		if (strcmp(colon + 1, services[i].name) == 0)
			return mem_printf("%.*s:%d", (int)(colon - word), word, services[i].port);
	return mem_strdup(word);
}

static bool next_hop(const char *word, struct conf_list *to, struct buf *why)
{
	struct conf_relay r;
	char *hop = number_port(word);
	bool ok = conf_relay_read(hop, &r);
	free(r.host);
	if (ok)
		conf_list_add(to, hop);
	else
		buf_printf(why, "%s is no next hop of ours: a host, [host] or [host]:port", word);
	free(hop);
	return ok;
}

static bool add_plain_word(const char *word, struct conf_list *to, struct buf *why)
{
	if (strpbrk(word, "/:")) {
		buf_printf(why, "%s is a file or a table: write its words", word);
		return false;
	}
	conf_list_add(to, word);
	return true;
}

static bool take_word(const struct job *j, const struct import *m, char *word, struct conf_list *to,
		      struct buf *why)
{
	switch (m->form) {
	case FORM_networks:
		return *word == '/' ? add_networks_of(word, to, why) : add_network(word, to, why);
	case FORM_tables:
		return postfix_table_add(word, false, to, why);
	case FORM_listener:
		return add_interface(j, word, to, why);
	case FORM_relay:
		return next_hop(word, to, why);
	default:
		return add_plain_word(word, to, why);
	}
}

static void put_found(struct job *j, const struct import *m, const struct conf_list *list)
{
	j->tables |= m->form == FORM_tables && list->n > 0;
	buf_printf(&j->section[m->kind], "%s = ", m->name);
	conf_value_print(row_of(m), list, &j->section[m->kind]);
	buf_puts(&j->section[m->kind], "\n");
}

/* Addresses beside a name that is left out are listened at; part of another list would be another policy. */
static bool put_list(struct job *j, const struct import *m, const char *text, struct buf *why)
{
	struct conf_list list = {0};
	char *copy = mem_strdup(text), *at = copy;
	bool whole = true, partial = m->form == FORM_listener;
	for (char *word; (whole || partial) && (word = next_word(&at));)
		whole &= take_word(j, m, word, &list, why);
	bool some = partial && list.n > 0;
	/* An empty list is one: without it our default would let own networks relay. */
	if (some || (whole && !partial))
		put_found(j, m, &list);
	conf_list_free(&list);
	free(copy);
	return whole || some;
}

/* --- all of it */

/* Is there a row before this one, of the same setting of ours, for which that holds? */
static bool is_before(const bool *holds, int i)
{
	for (int k = 0; k < i; k++)
		if (holds[k] && imports[k].kind == imports[i].kind &&
		    strcmp(imports[k].name, imports[i].name) == 0)
			return true;
	return false;
}

static bool put_setting(struct job *j, const struct import *m, const char *text, struct buf *why)
{
	return m->form >= FORM_list ? put_list(j, m, text, why) : put_value(j, m, text, why);
}

static void note_otherwise(struct job *j, const struct import *m, const struct postfix_setting *s,
			   const char *value)
{
	const struct otherwise *word = find_otherwise(m, value);
	if (word && word->why)
		add_note(j, "%s:%d: %s = %s: taken over as %s = %s: %s", j->file, s->line, s->name,
			 value, m->name, word->ours, word->why);
}

/* The setting, where it says anything: one that is not yes may leave that to the next row. */
static struct postfix_setting *find_setting(const struct job *j, const struct import *m)
{
	struct postfix_setting *s = postfix_conf_find(j->from, m->postfix);
	struct buf value = {0};
	bool silent = s && m->form == FORM_yes && postfix_conf_expand(j->from, s->value, &value) &&
		      strcasecmp(buf_cstr(&value), "yes") != 0;
	buf_fini(&value);
	if (s)
		s->taken = true;
	return silent ? NULL : s;
}

static void import_one(struct job *j, int i)
{
	const struct import *m = &imports[i];
	struct postfix_setting *s = find_setting(j, m);
	struct buf value = {0}, why = {0};
	j->named[i] = s != NULL;
	if (s && is_before(j->done, i)) {
		leave_out(j, s, "another setting says the same for mail by SMTP");
	} else if (s && !postfix_conf_expand(j->from, s->value, &value)) {
		leave_out(j, s, "it is an expression: write its value");
	} else if (s && put_setting(j, m, buf_cstr(&value), &why)) {
		j->done[i] = true;
		note_otherwise(j, m, s, buf_cstr(&value));
		if (buf_len(&why) > 0)
			add_note(j, "%s:%d: %s = %s: left out in part: %s", j->file, s->line,
				 s->name, s->value, buf_cstr(&why));
	} else if (s) {
		leave_out(j, s, buf_cstr(&why));
	} else if (m->unset && !is_before(j->named, i) &&
		   postfix_conf_expand(j->from, m->unset, &value) && buf_len(&value) > 0) {
		put_setting(j, m, buf_cstr(&value), &why);
	}
	buf_fini(&value);
	buf_fini(&why);
}

static void note_restriction(void *context, const struct postfix_setting *s,
			     const char *restriction, const char *text)
{
	struct job *j = context;
	add_note(j, "%s:%d: %s: %s: %s", j->file, s->line, s->name, restriction, text);
}

static void import_restrictions(struct job *j)
{
	struct postfix_restrictions r = {0};
	postfix_restrictions_read(j->from, &r, note_restriction, j);
	for (int i = 0; i < RESTRICTED_KINDS; i++) {
		const struct import m = {.kind = CONF_KIND_GLOBAL,
					 .form = FORM_tables,
					 .name = postfix_restrictions_setting((enum restricted)i)};
		if (r.access[i].n > 0)
			put_found(j, &m, &r.access[i]);
		conf_list_free(&r.access[i]);
	}
}

static void put_indented(struct buf *to, const struct buf *b)
{
	const char *text = buf_cstr((struct buf *)b);
	for (char *line; (line = words_line(&text)); free(line))
		buf_printf(to, "    %s\n", line);
}

static void put_sections(const struct job *j, struct buf *to)
{
	static const char *const heads[CONF_KINDS] = {
		[CONF_KIND_LISTENER] = "listener \"smtp\"",
		[CONF_KIND_TRANSPORT] = "transport \"smtp\"",
		[CONF_KIND_ROUTE] = "route \"*\"",
		[CONF_KIND_QUEUE] = "queue",
	};
	buf_puts(to, buf_cstr((struct buf *)&j->section[CONF_KIND_GLOBAL]));
	for (int kind = CONF_KIND_GLOBAL + 1; kind < CONF_KINDS; kind++) {
		if (buf_len(&j->section[kind]) == 0)
			continue;
		buf_printf(to, "\n%s {\n", heads[kind]);
		put_indented(to, &j->section[kind]);
		buf_puts(to, "}\n");
	}
}

static void find_faults(const struct job *j, struct conf_faults *faults)
{
	struct buf all = {0};
	put_sections(j, &all);
	conf_text_faults(buf_cstr(&all), faults);
	buf_fini(&all);
}

/* All lines but that of one setting. False: it has none. */
static bool copy_without(struct buf *section, const char *name, struct buf *to)
{
	size_t len = strlen(name), n;
	bool found = false;
	for (const char *line = buf_cstr(section); *line; line += n) {
		n = strcspn(line, "\n") + 1;
		if (strncmp(line, name, len) == 0 && line[len] == ' ')
			found = true;
		else
			buf_append(to, line, n);
	}
	return found;
}

/* The first of the faults that is not among those that are left. */
static const char *fault_gone(const struct conf_faults *were, const struct conf_faults *left)
{
	int i = 0;
	while (i < left->n && strcmp(were->fault[i].text, left->fault[i].text) == 0)
		i++;
	assert(i < were->n);
	return were->fault[i].text;
}

static void swap_texts(struct buf *one, struct buf *other)
{
	struct buf was = *one;
	*one = *other;
	*other = was;
}

static void keep_faults(struct conf_faults *faults, struct conf_faults *left)
{
	conf_faults_fini(faults);
	*faults = *left;
	*left = (struct conf_faults){0};
}

/* The setting goes where that leaves fewer faults, and they are those from then on. */
static void leave_out_faulty(struct job *j, int i, struct conf_faults *faults)
{
	const struct import *m = &imports[i];
	struct buf *section = &j->section[m->kind], without = {0};
	struct conf_faults left = {0};
	if (copy_without(section, m->name, &without)) {
		swap_texts(section, &without);
		find_faults(j, &left);
		if (j->done[i] && left.n < faults->n)
			leave_out(j, postfix_conf_find(j->from, m->postfix),
				  fault_gone(faults, &left));
		if (left.n < faults->n)
			keep_faults(faults, &left);
		else
			swap_texts(section, &without);
	}
	conf_faults_fini(&left);
	buf_fini(&without);
}

/* Of all this together `check` refuses some: first what main.cf says goes, then Postfix's defaults. */
static void leave_out_faults(struct job *j)
{
	struct conf_faults faults = {0};
	find_faults(j, &faults);
	for (int said = 1; said >= 0; said--)
		for (int i = 0; i < IMPORTS && faults.n > 0; i++)
			if (j->done[i] == said)
				leave_out_faulty(j, i, &faults);
	conf_faults_fini(&faults);
}

static void leave_out_rest(struct job *j)
{
	static const char *const reasons[][2] = {
#define X(pattern, why) {pattern, why},
		POSTFIX_LEFT_OUT(X)
#undef X
	};
	for (int i = 0; i < j->from->n; i++) {
		const struct postfix_setting *s = &j->from->of[i];
		const char *why = "sluice has no such setting";
		for (size_t k = 0; k < sizeof reasons / sizeof *reasons; k++) {
			if (address_pattern_fits_domain(reasons[k][0], s->name)) {
				why = reasons[k][1];
				break;
			}
		}
		if (!s->taken)
			leave_out(j, s, why);
	}
	if (j->from->bad > 0)
		add_note(j, "%s: %d line%s not of the form name = value", j->file, j->from->bad,
			 j->from->bad == 1 ? " is" : "s are");
}

/* Postfix changes the addresses in the header with those of the envelope, unless it was told otherwise. */
static void note_header(struct job *j)
{
	static const char *const names[] = {"canonical_maps", "sender_canonical_maps",
					    "recipient_canonical_maps", "masquerade_domains"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const struct postfix_setting *s = postfix_conf_find(j->from, names[i]);
		if (!s)
			continue;
		add_note(j,
			 "%s:%d: %s: the header is left as it is; Postfix changes it, too, for its "
			 "own networks: see rewrite_header",
			 j->file, s->line, s->name);
		return;
	}
}

/* Rows that are read, and hold for others than with Postfix. */
static void note_tables(struct job *j)
{
	if (j->tables)
		add_note(j,
			 "%s: keys of tables are whole here: example.com is that domain alone, "
			 "without those below it, and root is the domain of that name: see "
			 "sluice-postfix(7)",
			 j->file);
}

/* Without smtp_bind_address Postfix connects from the one address at which it listens. */
static void note_source(struct job *j)
{
	struct postfix_setting *s = postfix_conf_find(j->from, "inet_interfaces");
	struct buf value = {0};
	bool one = s && !postfix_conf_find(j->from, "smtp_bind_address") &&
		   !postfix_conf_find(j->from, "smtp_bind_address6") &&
		   postfix_conf_expand(j->from, s->value, &value) &&
		   !strpbrk(buf_cstr(&value), ", \t") && strpbrk(buf_cstr(&value), "0123456789") &&
		   strncmp(buf_cstr(&value), "127.", 4) != 0;
	if (one)
		add_note(j, "%s:%d: %s: Postfix connects from there, too: see source_address",
			 j->file, s->line, s->name);
	buf_fini(&value);
}

static void note_service(void *context, int line, const char *text)
{
	add_note(context, "master.cf:%d: %s", line, text);
}

/* Postfix may have a default for such a name, and it is not known here. */
static void note_unset(struct job *j)
{
	for (int i = 0; i < j->from->n; i++) {
		const struct postfix_setting *s = &j->from->of[i];
		struct buf names = {0};
		if (s->taken)
			postfix_conf_find_unset(j->from, s->value, &names);
		if (buf_len(&names) > 0)
			add_note(j,
				 "%s:%d: %s = %s: main.cf does not say what this is:%s; it counts "
				 "as nothing",
				 j->file, s->line, s->name, s->value, buf_cstr(&names));
		buf_fini(&names);
	}
}

static bool read_seconds(const struct job *j, const char *text, int64_t *ms)
{
	struct buf value = {0}, ours = {0}, why = {0};
	bool ok = postfix_conf_expand(j->from, text, &value);
	put_time(&ours, buf_cstr(&value), 's');
	ok = ok && conf_amount_parse(CONF_duration, buf_cstr(&ours), ms, &why);
	buf_fini(&value);
	buf_fini(&ours);
	buf_fini(&why);
	return ok;
}

/* Of a longest time that is below the shortest one Postfix makes nothing: the shortest is what it waits. */
static void settle_backoff(struct job *j)
{
	static const char postfix_default[] = "4000s";
	const struct postfix_setting *low = postfix_conf_find(j->from, "minimal_backoff_time"),
				     *high = postfix_conf_find(j->from, "maximal_backoff_time");
	int64_t shortest, longest;
	if (!low || !read_seconds(j, low->value, &shortest) ||
	    !read_seconds(j, high ? high->value : postfix_default, &longest) || longest >= shortest)
		return;
	add_note(j,
		 "%s:%d: %s = %s: it is above maximal_backoff_time, %s, which is taken over as the "
		 "same",
		 j->file, low->line, low->name, low->value, high ? high->value : postfix_default);
	postfix_conf_set(j->from, "maximal_backoff_time", low->value,
			 high ? high->line : low->line);
}

static void read_master(struct job *j)
{
	const char *slash = strrchr(j->file, '/');
	char *file = mem_printf("%.*smaster.cf", slash ? (int)(slash + 1 - j->file) : 0, j->file);
	postfix_master_read(file, note_service, j);
	free(file);
}

static void print_all(const struct job *j)
{
	struct buf all = {0};
	put_sections(j, &all);
	printf("# Made from %s by sluice import-postfix. See sluice.conf(5).\n%s", j->file,
	       buf_cstr(&all));
	buf_fini(&all);
}

static void print_notes(const struct job *j)
{
	const char *text = buf_cstr((struct buf *)&j->notes);
	fputs(text, stderr);
	if (*text)
		puts("\n# What is to be looked at:");
	for (char *line; (line = words_line(&text)); free(line))
		printf("# %s\n", line);
}

int cmd_import_postfix(int argc, char **argv)
{
	struct options o = {.usage = usage, .shorts = "c:", .longs = longs};
	struct job j = {.file = "/etc/postfix/main.cf"};
	while (options_next(&o, argc, argv) != -1)
		;
	if (optind + 1 < argc)
		options_wrong(&o, "import-postfix reads one file");
	if (optind < argc)
		j.file = argv[optind];
	j.from = postfix_conf_read(j.file);
	if (!j.from) {
		fprintf(stderr, "sluice: %s: %s\n", j.file, strerror(errno));
		return STATUS_REFUSED;
	}
	settle_backoff(&j);
	for (int i = 0; i < IMPORTS; i++)
		import_one(&j, i);
	import_restrictions(&j);
	leave_out_faults(&j);
	leave_out_rest(&j);
	note_header(&j);
	note_tables(&j);
	note_source(&j);
	note_unset(&j);
	read_master(&j);
	print_all(&j);
	print_notes(&j);
	buf_fini(&j.notes);
	for (int kind = 0; kind < CONF_KINDS; kind++)
		buf_fini(&j.section[kind]);
	postfix_conf_free(&j.from);
	return fflush(stdout) == 0 ? STATUS_DONE : STATUS_REFUSED;
}
