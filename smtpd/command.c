/* SPDX-License-Identifier: ISC */
#include "smtpd/command.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static const struct command verbs[] = {
#define V(verb, handler, states, argument, flags) {#verb, handler, states, argument, flags, NULL},
	VERBS(V)
#undef V
};

static const struct command *find_verb(const char *verb)
{
	for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
		if (strcasecmp(verbs[i].name, verb) == 0)
			return &verbs[i];
	return NULL;
}

size_t command_max(const char *line, size_t len)
{
	return len > 5 && strncasecmp(line, "AUTH ", 5) == 0 ? COMMAND_AUTH_MAX : COMMAND_MAX;
}

enum response command_split(char *line, size_t len, struct command *c)
{
	*c = (struct command){.name = ""};
	if (len + 2 > command_max(line, len))
		return RESPONSE_LINE_TOO_LONG;
	if (memchr(line, '\0', len) || memchr(line, '\r', len) || memchr(line, '\n', len))
		return RESPONSE_BAD_BYTES;
	while (len > 0 && (line[len - 1] == ' ' || line[len - 1] == '\t'))
		line[--len] = '\0';
	char *argument = line + strcspn(line, " \t");
	if (*argument)
		*argument++ = '\0';
	const struct command *row = find_verb(line);
	if (!row)
		return RESPONSE_UNKNOWN;
	*c = *row;
	c->argument = argument + strspn(argument, " \t");
	return RESPONSE_OK;
}

static enum response out_of_order(const struct command *c, enum session_state state)
{
	if (state == SESSION_GREETED)
		return RESPONSE_HELLO_FIRST;
	if (state != SESSION_READY)
		return c->handler == verb_mail ? RESPONSE_NESTED_MAIL : RESPONSE_ORDER;
	return c->handler == verb_rcpt ? RESPONSE_NEED_MAIL : RESPONSE_NEED_RCPT;
}

enum response command_check(const struct command *c, enum session_state state, bool tls_missing)
{
	if (tls_missing && !(c->flags & VERB_PLAIN))
		return RESPONSE_NEEDS_TLS;
	if (!(c->states & 1U << state))
		return out_of_order(c, state);
	if (c->argument_rule == ARGUMENT_NONE && c->argument[0])
		return RESPONSE_NO_ARGUMENT;
	if (c->argument_rule == ARGUMENT_MUST && !c->argument[0])
		return RESPONSE_NEEDS_ARGUMENT;
	return RESPONSE_OK;
}
