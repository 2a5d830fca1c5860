/* SPDX-License-Identifier: ISC */
#include "smtpc/capability.h"

#include "smtpc/sasl_client.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { BY_DIGITS = 9 };

static const struct {
	const char *keyword;
	size_t flag; /* offset in struct capability */
} keywords[] = {
	{"STARTTLS", offsetof(struct capability, starttls)},
	{"PIPELINING", offsetof(struct capability, pipelining)},
	{"CHUNKING", offsetof(struct capability, chunking)},
	{"BINARYMIME", offsetof(struct capability, binarymime)},
	{"DSN", offsetof(struct capability, dsn)},
	{"8BITMIME", offsetof(struct capability, eightbit)},
	{"SMTPUTF8", offsetof(struct capability, smtputf8)},
	{"REQUIRETLS", offsetof(struct capability, requiretls)},
	{"DELIVERBY", offsetof(struct capability, deliverby)},
	{"MT-PRIORITY", offsetof(struct capability, priority)},
};

/* SIZE may stand without a number; a number that is none takes the keyword with it. */
static void read_size(struct capability *c, const char *value)
{
	while (*value == ' ')
		value++;
	char *end;
	errno = 0;
	unsigned long long n = strtoull(value, &end, 10);
	while (*end == ' ')
		end++;
	if (*end != '\0' || errno != 0 || (*value && !isdigit((unsigned char)*value)))
		return;
	c->size = true;
	c->size_max = n;
}

/* RFC 2852 2: one option, which is first if there are others. */
static void read_deliverby(struct capability *c, const char *value)
{
	value += strspn(value, " ");
	size_t digits = strspn(value, "0123456789");
	if (digits > 0 && digits <= BY_DIGITS)
		c->by_min = strtoll(value, NULL, 10);
}

static const struct {
	const char *name;
	size_t limit; /* offset in struct capability */
} limits[] = {
	{"MAILMAX=", offsetof(struct capability, mail_max)},
	{"RCPTMAX=", offsetof(struct capability, rcpt_max)},
	{"RCPTDOMAINMAX=", offsetof(struct capability, domain_max)},
};

/* RFC 9422 4: six digits at most, and not 0. */
static uint32_t limit_value(const char *text)
{
	size_t digits = strspn(text, "0123456789");
	bool whole = text[digits] == '\0' || text[digits] == ' ';
	return digits > 0 && digits <= 6 && whole ? (uint32_t)strtoul(text, NULL, 10) : 0;
}

static void read_limits(struct capability *c, const char *words)
{
	for (; *words; words += strcspn(words, " ")) {
		words += strspn(words, " ");
		for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
			size_t len = strlen(limits[i].name);
			if (strncasecmp(words, limits[i].name, len) == 0)
				*(uint32_t *)((char *)c + limits[i].limit) =
					limit_value(words + len);
		}
	}
}

static void read_line(struct capability *c, const char *line)
{
	size_t len = strcspn(line, " ");
	if (strncasecmp(line, "AUTH", 4) == 0 && strchr(" =", line[4])) /* some say AUTH= */
		c->auth |= sasl_client_offered(line + 4);
	if (len == 6 && strncasecmp(line, "LIMITS", 6) == 0)
		read_limits(c, line + 6);
	if (len == 9 && strncasecmp(line, "DELIVERBY", 9) == 0)
		read_deliverby(c, line + 9);
	if (len == 4 && strncasecmp(line, "SIZE", 4) == 0)
		read_size(c, line + 4);
	for (size_t i = 0; i < sizeof keywords / sizeof keywords[0]; i++) {
		const char *k = keywords[i].keyword;
		if (strlen(k) == len && strncasecmp(line, k, len) == 0)
			*(bool *)((char *)c + keywords[i].flag) = true;
	}
}

struct capability capability_of(const struct reply *r)
{
	struct capability c = {0};
	const char *line = reply_line(r, NULL); /* the host's name */
	while (line && (line = reply_line(r, line)))
		read_line(&c, line);
	return c;
}
