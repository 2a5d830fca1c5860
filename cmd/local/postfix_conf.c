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

static void set_value(struct postfix_conf *c, char *name, char *value, int line)
{
	struct postfix_setting *s = postfix_conf_find(c, name);
	if (!s) {
		c->of = mem_realloc(c->of, ((size_t)c->n + 1) * sizeof *c->of);
		s = &c->of[c->n++];
		*s = (struct postfix_setting){.name = name};
	} else {
		free(name);
		free(s->value);
	}
	s->value = value;
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
	set_value(c, name, copy_trimmed(equals + 1, strlen(equals + 1)), line);
}

static void read_lines(struct postfix_conf *c, FILE *in)
{
	char *line = NULL;
	size_t cap = 0;
	int number = 0, begun = 0;
	struct buf text;
	buf_init(&text);
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
	struct postfix_conf *c = *cp;
	if (!c)
		return;
	for (int i = 0; i < c->n; i++) {
		free(c->of[i].name);
		free(c->of[i].value);
	}
	free(c->of);
	free(c);
	*cp = NULL;
}

struct postfix_setting *postfix_conf_find(const struct postfix_conf *c, const char *name)
{
	for (int i = 0; i < c->n; i++)
		if (strcmp(c->of[i].name, name) == 0)
			return &c->of[i];
	return NULL;
}

static void add_own_name(const struct postfix_conf *c, bool domain, struct buf *to)
{
	char host[256] = "localhost";
	const struct postfix_setting *s = postfix_conf_find(c, "myhostname");
	if (s && !strchr(s->value, '$'))
		snprintf(host, sizeof host, "%s", s->value);
	else
		gethostname(host, sizeof host - 1);
	const char *dot = strchr(host, '.');
	buf_puts(to, domain ? (dot ? dot + 1 : "localdomain") : host);
}

static bool expand_value(const struct postfix_conf *, const char *value, struct buf *to, int depth);

static bool add_value_of(const struct postfix_conf *c, const char *name, struct buf *to, int depth)
{
	const struct postfix_setting *s = postfix_conf_find(c, name);
	if (s)
		return depth < DEPTH_MAX && expand_value(c, s->value, to, depth + 1);
	if (strcmp(name, "myhostname") == 0 || strcmp(name, "myorigin") == 0)
		add_own_name(c, false, to);
	else if (strcmp(name, "mydomain") == 0)
		add_own_name(c, true, to);
	else if (strcmp(name, "config_directory") == 0)
		buf_puts(to, "/etc/postfix");
	else if (strcmp(name, "default_database_type") == 0)
		buf_puts(to, "hash");
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

static bool expand_value(const struct postfix_conf *c, const char *value, struct buf *to, int depth)
{
	bool ok = true;
	while (ok && *value) {
		size_t plain = strcspn(value, "$");
		buf_append(to, value, plain);
		value += plain;
		if (*value == '$' && value[1] == '$') {
			buf_puts(to, "$");
			value += 2;
		} else if (*value == '$') {
			char *name = NULL;
			value = take_name(value + 1, &name);
			ok = value && add_value_of(c, name, to, depth);
			free(name);
		}
	}
	return ok;
}

bool postfix_conf_expand(const struct postfix_conf *c, const char *value, struct buf *to)
{
	return expand_value(c, value, to, 0);
}
