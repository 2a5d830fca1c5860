/* SPDX-License-Identifier: ISC */
#include "sim/trace.h"

#include "base/conf_file.h"
#include "base/keyed_hash.h"
#include "base/mailaddr.h"
#include "base/mem.h"
#include "base/name_key.h"
#include "sim/event.h"

#include <stdlib.h>
#include <string.h>

struct traced {
	char *id;
	int arrival;
	uint32_t known; /* recipients whose domains are known */
	struct traced_address {
		char *address;
		UT_hash_handle hh;
	} * seen;
	UT_hash_handle hh;
};

struct reader {
	struct arrivals *to;
	const struct scenario *scenario;
	const struct scenario_arrival *section;
	struct conf_faults *faults;
	char *file;
	int line;
	int64_t first_ms; /* of the first message; -1 before */
	struct traced *messages;
	struct buf value;
};

static bool read_number(struct reader *r, const char *line, const char *key, int64_t *to)
{
	char *end;
	if (!event_field(line, key, &r->value))
		return false;
	*to = strtoll(buf_cstr(&r->value), &end, 10);
	return *end == '\0' && *to >= 0;
}

static void take_queued(struct reader *r, const char *line)
{
	int64_t at_ms, nrcpt, size;
	if (event_field(line, "report_of", &r->value))
		return;
	bool good = read_number(r, line, "nrcpt", &nrcpt) && read_number(r, line, "size", &size) &&
		    event_field(line, "time", &r->value) &&
		    event_time(buf_cstr(&r->value), &at_ms) && nrcpt >= 1 &&
		    nrcpt <= ARRIVAL_RECIPIENTS_MAX;
	if (!good || !event_field(line, "id", &r->value)) {
		conf_fault(r->faults, r->file, r->line,
			   "a queued event has time, id, nrcpt and size");
		return;
	}
	if (r->first_ms < 0)
		r->first_ms = at_ms;
	int64_t after = at_ms > r->first_ms ? at_ms - r->first_ms : 0;
	struct traced *t = mem_zalloc(sizeof *t);
	t->id = mem_strdup(buf_cstr(&r->value));
	t->arrival = r->to->n;
	arrivals_add(r->to, (r->section->start + after) * 1000, (uint64_t)size, (uint32_t)nrcpt);
	HASH_ADD_KEYPTR(hh, r->messages, t->id, strlen(t->id), t);
}

static const char *keep_word(struct arrivals *a, const char *word)
{
	for (int i = a->nword - 1; i >= 0; i--)
		if (strcmp(a->word[i], word) == 0)
			return a->word[i];
	return arrivals_keep(a, mem_strdup(word));
}

static void take_delivered(struct reader *r, const char *line)
{
	struct traced *t;
	struct traced_address *seen;
	if (!event_field(line, "id", &r->value))
		return;
	HASH_FIND_STR(r->messages, buf_cstr(&r->value), t);
	if (!t || !event_field(line, "to", &r->value) || !strchr(buf_cstr(&r->value), '@'))
		return;
	const char *address = buf_cstr(&r->value);
	struct arrival *a = &r->to->item[t->arrival];
	HASH_FIND_STR(t->seen, address, seen);
	if (seen || t->known == a->nrcpt)
		return;
	seen = mem_zalloc(sizeof *seen);
	seen->address = mem_strdup(address);
	HASH_ADD_KEYPTR(hh, t->seen, seen->address, strlen(seen->address), seen);
	char *domain = name_key(mailaddr_domain(address));
	a->domain[t->known++] = keep_word(r->to, domain);
	if (!scenario_find_site(r->scenario, domain))
		conf_fault(r->faults, r->file, r->line, "no site serves \"%s\"", domain);
	free(domain);
}

static void take_line(struct reader *r, const char *line)
{
	if (!event_field(line, "event", &r->value)) {
		if (line[strspn(line, " \t\r")])
			conf_fault(r->faults, r->file, r->line, "this is no event of a log");
		return;
	}
	const char *event = buf_cstr(&r->value);
	if (strcmp(event, "queued") == 0)
		take_queued(r, line);
	else if (strcmp(event, "sent") == 0 || strcmp(event, "deferred") == 0 ||
		 strcmp(event, "bounced") == 0 || strcmp(event, "in_doubt") == 0)
		take_delivered(r, line);
}

/* Recipients that were never attempted, or whose deliveries the log does not reach. */
static void complete_recipients(struct reader *r, struct dice *dice)
{
	hash_each (struct traced, t, r->messages) {
		struct arrival *a = &r->to->item[t->arrival];
		if (t->known < a->nrcpt && r->section->domain_spread.n == 0) {
			conf_fault(r->faults, r->file, 1,
				   "the recipients of %s are not in the log: the arrival needs "
				   "domains for such",
				   t->id);
			return;
		}
		for (uint32_t i = t->known; i < a->nrcpt; i++)
			a->domain[i] =
				arrivals_domain(r->to, &r->section->domain_spread, dice, i + 1);
	}
}

static void forget_messages(struct reader *r)
{
	hash_each (struct traced, t, r->messages) {
		hash_each (struct traced_address, seen, t->seen) {
			HASH_DEL(t->seen, seen);
			free(seen->address);
			free(seen);
		}
		HASH_DEL(r->messages, t);
		free(t->id);
		free(t);
	}
	buf_fini(&r->value);
}

/* As it is named, seen from the folder of the scenario. */
static char *path_of(const struct scenario *s, const char *name)
{
	const char *slash = strrchr(s->file, '/');
	if (name[0] == '/' || !slash)
		return mem_strdup(name);
	return mem_printf("%.*s/%s", (int)(slash - s->file), s->file, name);
}

void trace_read(struct arrivals *to, const struct scenario *scenario,
		const struct scenario_arrival *section, struct dice *dice,
		struct conf_faults *faults)
{
	struct reader r = {.to = to,
			   .scenario = scenario,
			   .section = section,
			   .faults = faults,
			   .file = path_of(scenario, section->trace),
			   .first_ms = -1};
	char *text = conf_file_text(r.file, faults);
	for (char *rest = text, *line; text && (line = strsep(&rest, "\n")) != NULL;) {
		r.line++;
		take_line(&r, line);
	}
	if (faults->n == 0)
		complete_recipients(&r, dice);
	free(text);
	forget_messages(&r);
	/* Faults point at the name: it stays as long as the arrivals do. */
	to->word = mem_realloc(to->word, (size_t)(to->nword + 1) * sizeof *to->word);
	to->word[to->nword++] = r.file;
}
