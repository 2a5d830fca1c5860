/* SPDX-License-Identifier: ISC */
#include "tests/unit/histories/ledger.h"

#include "base/clock.h"
#include "base/ident.h"
#include "base/mem.h"
#include "tests/unit/histories/fibers.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ledger ledger;
static bool loud;

const char *broken_text(enum broken b)
{
	static const char *const text[BROKEN_SENTENCES] = {
		[BROKEN_NONE] = "all is well",
		[BROKEN_LOST] = "acknowledged mail is lost",
		[BROKEN_AGAIN] = "sent again, and nothing named it as in doubt",
		[BROKEN_REVIVED] = "finished long ago, and sent again",
		[BROKEN_REFUSED] = "refused, and sent",
		[BROKEN_DAMAGED] = "put aside as damaged",
		[BROKEN_CONTENT] = "its content is another one",
		[BROKEN_STRANGER] = "a message that nobody has brought",
		[BROKEN_SHARED_ID] = "two messages have one id",
		[BROKEN_HALF] = "a message without the one that was stored with it",
		[BROKEN_TWICE] = "in the queues of two nodes",
		[BROKEN_UNFENCED] = "a node never comes to take mail",
		[BROKEN_CLAIM] = "a claim is kept for ever",
		[BROKEN_ENDLESS] = "a node does not end within its grace",
		[BROKEN_DEAD] = "a node can't start",
		[BROKEN_STUCK] = "mail stays in a queue for ever",
		[BROKEN_BUSY] = "a thread goes on and on, and nothing comes of it",
		[BROKEN_ASSERT] = "the program ends itself",
	};
	return text[b];
}

void ledger_begin(bool is_loud)
{
	memset(&ledger, 0, sizeof ledger);
	loud = is_loud;
}

void ledger_broken(enum broken b, const char *fmt, ...)
{
	va_list args;
	if (ledger.broken)
		return;
	ledger.broken = b;
	va_start(args, fmt);
	vsnprintf(ledger.detail, sizeof ledger.detail, fmt, args);
	va_end(args);
}

struct sheet *ledger_find(uint64_t id)
{
	for (int i = 0; i < ledger.n; i++)
		if (ledger.sheet[i].id == id)
			return &ledger.sheet[i];
	return NULL;
}

static const char *text_of(uint64_t id)
{
	static char text[IDENT_TEXT];
	return ident_text(id, text);
}

struct sheet *ledger_new(uint64_t id, uint64_t salt, int at)
{
	if (ledger_find(id)) {
		ledger_broken(BROKEN_SHARED_ID, "%s", text_of(id));
		return NULL;
	}
	if (ledger.n == LEDGER_MESSAGES)
		return NULL;
	struct sheet *s = &ledger.sheet[ledger.n++];
	*s = (struct sheet){.id = id, .salt = salt, .at = at};
	return s;
}

static void say(const char *what, uint64_t id, int by)
{
	if (loud)
		fprintf(stderr, "%8.3f n%d: = %s %s\n", (double)(fibers.now_us - 1000000000) / 1e6,
			by, what, text_of(id));
}

static struct sheet *known(uint64_t id)
{
	struct sheet *s = ledger_find(id);
	if (!s)
		ledger_broken(BROKEN_STRANGER, "%s", text_of(id));
	return s;
}

void ledger_promised(uint64_t id)
{
	struct sheet *s = known(id);
	struct sheet *with = s && s->with ? known(s->with) : NULL;
	if (!s)
		return;
	say("promised", id, s->at);
	s->promised = true;
	if (with)
		with->promised = true;
}

void ledger_sent(uint64_t id, uint32_t rcpt, int by)
{
	struct sheet *s = known(id);
	if (!s || rcpt >= LEDGER_RCPT)
		return;
	say("sent", id, by);
	if (s->rcpt[rcpt].sent && s->firm && !s->untold)
		ledger_broken(BROKEN_REVIVED, "%s recipient %u, by %d, which %d had finished",
			      text_of(id), rcpt, by, s->finisher);
	if (s->rcpt[rcpt].sent && !s->rcpt[rcpt].doubted && !s->untold)
		ledger_broken(BROKEN_AGAIN, "%s recipient %u, by %d %lld ms ago, by %d now",
			      text_of(id), rcpt, s->rcpt[rcpt].by,
			      (long long)(fibers.now_us - s->rcpt[rcpt].sent_us) / 1000, by);
	s->rcpt[rcpt].sent = true;
	s->rcpt[rcpt].doubted = false;
	s->rcpt[rcpt].by = by;
	s->rcpt[rcpt].sent_us = fibers.now_us;
}

void ledger_doubted(uint64_t id)
{
	struct sheet *s = ledger_find(id);
	if (!s)
		return;
	for (int i = 0; i < LEDGER_RCPT; i++)
		s->rcpt[i].doubted = true;
	s->finishing = s->firm; /* who says so has not heard that it was finished */
}

void ledger_finishing(uint64_t id, int by)
{
	struct sheet *s = known(id);
	if (!s)
		return;
	say("finished", id, by);
	s->finishing = true;
	s->finisher = by;
	s->life = fibers_life(by);
	s->finish_us = fibers.now_us;
}

bool sheet_done(const struct sheet *s)
{
	bool all = true;
	for (uint32_t i = 0; i < sheet_rcpts(s); i++)
		all &= s->rcpt[i].sent;
	return all || s->deleted || s->deleting > 0 || s->excused || !s->promised;
}

uint32_t sheet_rcpts(const struct sheet *s)
{
	return 1 + (uint32_t)(s->salt >> 8) % LEDGER_RCPT;
}

bool sheet_large(const struct sheet *s)
{
	return (s->salt >> 16) % 8 == 0;
}

bool sheet_held(const struct sheet *s)
{
	return (s->salt >> 24) % 12 == 0;
}

size_t sheet_size(const struct sheet *s)
{
	size_t most = (s->salt >> 32) % 5 == 0 ? 6000 : 600;
	return 1 + (size_t)(s->salt >> 40) % most;
}

struct envelope *sheet_envelope(const struct sheet *s)
{
	struct envelope *e = envelope_new();
	e->id = s->id;
	e->arrived_ms = clock_wall_ms();
	e->size = sheet_size(s);
	e->held = sheet_held(s);
	e->sender = mem_strdup("a@a.example");
	for (uint32_t i = 0; i < sheet_rcpts(s); i++)
		envelope_add(e, i == 0 ? "b@b.example" : "c@c.example");
	return e;
}

char *sheet_bytes(const struct sheet *s)
{
	size_t size = sheet_size(s);
	char *bytes = mem_alloc(size + 8);
	struct chance c = {.state = s->salt};
	for (size_t i = 0; i < size; i += 8) {
		uint64_t word = chance_next(&c);
		memcpy(bytes + i, &word, 8);
	}
	return bytes;
}

bool ledger_check_content(const struct sheet *s, const struct content *c)
{
	size_t size = sheet_size(s);
	char *want = sheet_bytes(s), *have = mem_alloc(size + 1);
	ssize_t n = content_read(c, 0, have, size + 1);
	if (n >= 0 && ((size_t)n != size || memcmp(want, have, size) != 0))
		ledger_broken(BROKEN_CONTENT, "%s", text_of(s->id));
	free(want);
	free(have);
	return n >= 0;
}
