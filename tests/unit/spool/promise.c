/* SPDX-License-Identifier: ISC */
/* The messages themselves: all of one follows from its salt. */
#include "base/mem.h"
#include "tests/unit/spool/promises.h"
#include "tests/unit/spool/chance.h"

#include <stdlib.h>
#include <string.h>

static struct chance chance_of(const struct promise *l)
{
	return (struct chance){.state = l->salt};
}

size_t promise_size(const struct promise *l)
{
	struct chance c = chance_of(l);
	if (promise_large(l))
		return chance_below(&c, 20000);
	uint32_t most = chance_percent(&c, 20) ? 9000 : 1500;
	return chance_percent(&c, 5) ? 0 : chance_below(&c, most);
}

bool promise_large(const struct promise *l)
{
	return l->salt % 8 == 0;
}

bool promise_held(const struct promise *l)
{
	return l->salt % 6 == 0 && !l->replaces;
}

/* One in five was to be sent later, some of these at a time that has passed. */
static void schedule(struct envelope *e, const struct promise *l)
{
	static const int ahead_ms[] = {-5000, 20, 1500, 60000};
	if (l->salt % 5 > 0)
		return;
	e->not_before_ms = l->arrived_ms + ahead_ms[l->salt / 5 % 4];
	e->hold_for = l->salt % 2;
	e->hold_asked = e->hold_for ? 60 : e->not_before_ms;
}

struct envelope *promise_envelope(const struct promise *l)
{
	static const uint8_t notify[] = {0, 0, NOTIFY_NEVER, NOTIFY_SUCCESS,
					 NOTIFY_FAILURE | NOTIFY_SUCCESS};
	struct chance c = {.state = l->salt + 1};
	struct envelope *e = envelope_new();
	e->id = l->id;
	e->arrived_ms = l->arrived_ms;
	e->size = promise_size(l);
	e->held = promise_held(l);
	schedule(e, l);
	e->sender = chance_percent(&c, 20)
			    ? mem_strdup("")
			    : mem_printf("sender%u@example.org", chance_below(&c, 1000));
	if (chance_percent(&c, 30))
		e->envid = mem_printf("envid-%u", chance_below(&c, 1000));
	if (l->id % 3 > 0)
		e->flow = mem_printf("flow%u", (unsigned)(l->id % 11));
	envelope_came_from(e, l->id % 2 ? "ann" : NULL, l->id % 5 ? "192.0.2.1" : NULL);
	e->ret = (uint8_t)chance_below(&c, 3);
	e->body = (uint8_t)chance_below(&c, 2);
	e->smtputf8 = chance_percent(&c, 20);
	uint32_t n = 1 + chance_below(&c, PROMISE_RCPT);
	for (uint32_t i = 0; i < n; i++) {
		char *address = mem_printf("rcpt%u.%u@example.com", i, chance_below(&c, 1000));
		struct recipient *r = envelope_add(e, address);
		r->notify = notify[chance_below(&c, sizeof notify)];
		if (chance_percent(&c, 20))
			r->orcpt = mem_printf("rfc822;%s", address);
		free(address);
	}
	return e;
}

static char *promise_bytes(const struct promise *l, size_t size)
{
	char *bytes = mem_alloc(size + 8);
	struct chance c = {.state = l->salt + 2};
	for (size_t i = 0; i < size; i += 8) {
		uint64_t word = chance_next(&c);
		memcpy(bytes + i, &word, 8);
	}
	return bytes;
}

struct content *promise_content(const struct promise *l)
{
	size_t size = promise_size(l);
	return content_in_memory(promise_bytes(l, size), size);
}

const char promises_unreadable[] = "its content can't be read";

const char *promises_check_content(const struct promise *l, const struct content *c)
{
	size_t size = promise_size(l);
	if (c->size != size)
		return "its content has another size";
	char *want = promise_bytes(l, size), *have = mem_alloc(size + 1);
	ssize_t n = content_read(c, 0, have, size + 1);
	bool same = n == (ssize_t)size && memcmp(want, have, size) == 0;
	free(want);
	free(have);
	if (n < 0)
		return promises_unreadable;
	return same ? NULL : "its content is another one";
}
