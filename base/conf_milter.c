/* SPDX-License-Identifier: ISC */
#include "base/conf_build.h"

#include "base/address.h"

#include <assert.h>
#include <string.h>

#define FAULT(place, item, line, ...)                                                              \
	conf_fault(faults, c->file, conf_lines_find(lines, (place), (item), (line)), __VA_ARGS__)

static bool read_address(const char *text, union address *to)
{
	static const char localhost[] = "localhost:";
	char near[sizeof "127.0.0.1:65535"] = "127.0.0.1:";
	size_t len = strlen(localhost);
	if (strncmp(text, "unix:", 5) == 0)
		return address_parse_unix(text, to);
	if (strncmp(text, "inet:", 5) != 0)
		return false;
	text += 5;
	if (strncmp(text, localhost, len) == 0 && strlen(text + len) <= 5)
		text = strcat(near, text + len);
	return address_parse_with_port(text, to) && address_port(to) > 0;
}

static void check_section(const struct conf *c, struct conf_milter *m,
			  const struct conf_lines *lines, struct conf_faults *faults)
{
	if (m->title[0] == '\0')
		FAULT(m, -1, m->line, "a milter must have a name");
	for (const struct conf_milter *other = c->milter; other < m; other++)
		if (strcmp(other->title, m->title) == 0)
			FAULT(m, -1, m->line, "milter \"%s\" is already there, in line %d",
			      m->title, other->line);
	if (!read_address(m->address, &m->to))
		FAULT(&m->address, -1, m->line,
		      "milter \"%s\": \"%s\" is not inet:ADDRESS:PORT, nor unix:/SOCKET", m->title,
		      m->address);
}

/* A filter of the listener's, named by item `i` of its milters. */
static void add_milter(const struct conf *c, struct conf_listener *l, int i,
		       const struct conf_milter *m, const struct conf_lines *lines,
		       struct conf_faults *faults)
{
	for (int j = 0; j < l->npasses; j++)
		if (l->passes[j] == m) {
			FAULT(&l->milters, i, l->line, "milter \"%s\" is named twice", m->title);
			return;
		}
	if (l->npasses == CONF_MILTERS_MAX)
		FAULT(&l->milters, i, l->line, "listener \"%s\": more than %d milters", l->title,
		      CONF_MILTERS_MAX);
	else
		l->passes[l->npasses++] = m;
}

static void check_listener(const struct conf *c, struct conf_listener *l,
			   const struct conf_lines *lines, struct conf_faults *faults)
{
	for (int i = 0; i < l->milters.n; i++) {
		const char *name = l->milters.item[i];
		const struct conf_milter *m = conf_find(c, CONF_KIND_MILTER, name);
		if (m)
			add_milter(c, l, i, m, lines, faults);
		else if (strcmp(name, "*") != 0)
			FAULT(&l->milters, i, l->line, "there is no milter \"%s\"", name);
		else
			for (int k = 0; k < c->nmilter; k++)
				add_milter(c, l, i, &c->milter[k], lines, faults);
	}
}

bool conf_milter_passed(const struct conf *c, const struct conf_milter *m)
{
	for (int i = 0; i < c->nlistener; i++)
		for (int k = 0; k < c->listener[i].npasses; k++)
			if (c->listener[i].passes[k] == m)
				return true;
	return m->local;
}

const char *conf_milter_action(enum milter_default action)
{
	static const char *const names[] = {[MILTER_DEFAULT_TEMPFAIL] = "tempfail",
					    [MILTER_DEFAULT_ACCEPT] = "accept",
					    [MILTER_DEFAULT_REJECT] = "reject",
					    [MILTER_DEFAULT_QUARANTINE] = "quarantine"};
	assert((size_t)action < sizeof names / sizeof *names);
	return names[action];
}

int conf_milter_locals(const struct conf *c)
{
	int n = 0;
	for (int i = 0; i < c->nmilter; i++)
		n += c->milter[i].local;
	return n;
}

void conf_milter_check(struct conf *c, const struct conf_lines *lines, struct conf_faults *faults)
{
	for (int i = 0; i < c->nmilter; i++)
		check_section(c, &c->milter[i], lines, faults);
	for (int i = 0; i < c->nlistener; i++)
		check_listener(c, &c->listener[i], lines, faults);
	if (conf_milter_locals(c) > CONF_MILTERS_MAX)
		FAULT(&c->milter[c->nmilter - 1], -1, c->milter[c->nmilter - 1].line,
		      "more than %d milters are local", CONF_MILTERS_MAX);
}
