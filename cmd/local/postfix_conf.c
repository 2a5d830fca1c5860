/* SPDX-License-Identifier: ISC */
#include "cmd/local/postfix_conf.h"

#include "base/mem.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEPTH_MAX = 20 };

static char *copy_trimmed(const char *text, size_t len)
{
	while (len > 0 && isspace((unsigned char)*text)) {
		text++;
		len--;
	}
	while (len > 0 && isspace((unsigned char)text[len - 1]))
		len--;
	return mem_strndup(text, len);
}

void postfix_conf_set(struct postfix_conf *c, const char *name, const char *value, int line)
{
	struct postfix_setting *s = postfix_conf_find(c, name);
	char *own = mem_strdup(value); /* it may be a value of another setting, or of this one */
	if (!s) {
		c->of = mem_realloc(c->of, ((size_t)c->n + 1) * sizeof *c->of);
		s = &c->of[c->n++];
		*s = (struct postfix_setting){.name = mem_strdup(name)};
	}
	free(s->value);
	s->value = own;
	s->line = line;
}

/* All lines of one setting, which begins in this line. */
static void take_setting(struct postfix_conf *c, const struct buf *text, int line)
{
	const char *all = buf_cstr((struct buf *)text), *equals = strchr(all, '=');
	char *name = equals ? copy_trimmed(all, (size_t)(equals - all)) : NULL;
	if (!name || !*name || strpbrk(name, " \t")) {
		c->bad++;
		free(name);
		return;
	}
	char *value = copy_trimmed(equals + 1, strlen(equals + 1));
	postfix_conf_set(c, name, value, line);
	free(value);
	free(name);
}

static void read_lines(struct postfix_conf *c, FILE *in)
{
	char *line = NULL;
	size_t cap = 0;
	int number = 0, begun = 0;
	struct buf text = {0};
	while (getline(&line, &cap, in) >= 0) {
		number++;
		const char *first = line + strspn(line, " \t\r\n");
		if (*first == '\0' || *first == '#')
			continue;
		if (first == line && buf_len(&text) > 0) {
			take_setting(c, &text, begun);
			buf_clear(&text);
		}
		if (buf_len(&text) == 0)
			begun = number;
		buf_printf(&text, "%s%.*s", buf_len(&text) ? " " : "", (int)strcspn(first, "\r\n"),
			   first);
	}
	if (buf_len(&text) > 0)
		take_setting(c, &text, begun);
	buf_fini(&text);
	free(line);
}

struct postfix_conf *postfix_conf_read(const char *file)
{
	FILE *in = fopen(file, "re");
	if (!in)
		return NULL;
	struct postfix_conf *c = mem_zalloc(sizeof *c);
	errno = 0;
	read_lines(c, in);
	int error = ferror(in) ? errno : 0; /* it is a folder, or the disk fails */
	fclose(in);
	if (error) {
		postfix_conf_free(&c);
		errno = error;
	}
	return c;
}

void postfix_conf_free(struct postfix_conf **cp)
{
	struct postfix_conf *c = mem_take(cp);
	if (!c)
		return;
	for (int i = 0; i < c->n; i++) {
		free(c->of[i].name);
		free(c->of[i].value);
	}
	free(c->of);
	free(c);
}

struct postfix_setting *postfix_conf_find(const struct postfix_conf *c, const char *name)
{
	for (int i = 0; i < c->n; i++)
		if (strcmp(c->of[i].name, name) == 0)
			return &c->of[i];
	return NULL;
}

/* An expansion: where it goes, and where the names go, " $a $b", that nobody has set. */
struct expansion {
	const struct postfix_conf *from;
	struct buf *to;
	struct buf *unset; /* or NULL */
	int depth;
};

static bool expand_value(struct expansion *, const char *value);

static bool expand_deeper(struct expansion *e, const char *value)
{
	if (e->depth == DEPTH_MAX)
		return false;
	e->depth++;
	bool ok = expand_value(e, value);
	e->depth--;
	return ok;
}

/* The domain that myhostname ends with, where that does not end with the domain itself. */
static bool expand_own_host(const struct expansion *e, struct buf *host)
{
	const struct postfix_setting *s = postfix_conf_find(e->from, "myhostname");
	struct expansion of = {.from = e->from, .to = host, .depth = e->depth};
	bool ok = s && !strstr(s->value, "mydomain") && expand_deeper(&of, s->value);
	if (!ok)
		buf_clear(host);
	return ok;
}

static void add_own_name(const struct expansion *e, bool domain)
{
	char machine[256] = "localhost";
	struct buf own = {0};
	gethostname(machine, sizeof machine - 1);
	const char *host = expand_own_host(e, &own) ? buf_cstr(&own) : machine;
	const char *dot = strchr(host, '.');
	buf_puts(e->to, domain ? (dot ? dot + 1 : "localdomain") : host);
	buf_fini(&own);
}

static bool add_value_of(struct expansion *e, const char *name)
{
	const struct postfix_setting *s = postfix_conf_find(e->from, name);
	if (s)
		return expand_deeper(e, s->value);
	if (strcmp(name, "myhostname") == 0 || strcmp(name, "myorigin") == 0)
		add_own_name(e, false);
	else if (strcmp(name, "mydomain") == 0)
		add_own_name(e, true);
	else if (strcmp(name, "config_directory") == 0)
		buf_puts(e->to, "/etc/postfix");
	else if (strcmp(name, "default_database_type") == 0)
		buf_puts(e->to, "hash");
	else if (e->unset)
		buf_printf(e->unset, " $%s", name);
	return true;
}

/* The name behind a dollar sign; what follows it comes back. NULL: an expression. */
static const char *take_name(const char *at, char **name)
{
	char close = *at == '{' ? '}' : *at == '(' ? ')' : '\0';
	at += close != '\0';
	size_t len = 0;
	while (isalnum((unsigned char)at[len]) || at[len] == '_')
		len++;
	if (len == 0 || (close && at[len] != close))
		return NULL;
	*name = mem_strndup(at, len);
	return at + len + (close != '\0');
}

static bool expand_value(struct expansion *e, const char *value)
{
	bool ok = true;
	while (ok && *value) {
		size_t plain = strcspn(value, "$");
		buf_append(e->to, value, plain);
		value += plain;
		if (*value == '$' && value[1] == '$') {
			buf_puts(e->to, "$");
			value += 2;
		} else if (*value == '$') {
			char *name = NULL;
			value = take_name(value + 1, &name);
			ok = value && add_value_of(e, name);
			free(name);
		}
	}
	return ok;
}

bool postfix_conf_expand(const struct postfix_conf *c, const char *value, struct buf *to)
{
	return expand_value(&(struct expansion){.from = c, .to = to}, value);
}

void postfix_conf_find_unset(const struct postfix_conf *c, const char *value, struct buf *names)
{
	struct buf ignored = {0};
	expand_value(&(struct expansion){.from = c, .to = &ignored, .unset = names}, value);
	buf_fini(&ignored);
}
