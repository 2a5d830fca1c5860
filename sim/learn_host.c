/* SPDX-License-Identifier: ISC */
/* One host, by what a log tells. */
#include "sim/learn.h"

#include "base/mem.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	FAILURES_OUT = 3,      /* so many in a row are no chance, */
	SPAN_OUT_MS = 5000,    /* nor two so far apart */
	SAME_FAILURE_MS = 500, /* what fails for many recipients at once has failed once */
};

/* As a scenario can have it: a path may hold what ends a word or a text there. */
static char *socket_address(const char *relay)
{
	char *address = mem_strdup(relay);
	for (char *c = address; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("/.:-_", *c))
			*c = '_';
	return address;
}

/* Of name[address]:port, or unix:PATH. NULL: it is neither. */
static char *address_of(const char *relay)
{
	if (strncmp(relay, "unix:", 5) == 0)
		return socket_address(relay);
	const char *open = strchr(relay, '['), *end = open ? strchr(open, ']') : NULL;
	return end && end > open + 1 ? mem_strndup(open + 1, (size_t)(end - open) - 1) : NULL;
}

struct learn_host *learn_host_get(struct learn *l, const char *relay)
{
	struct learn_host *h = NULL;
	char *address = address_of(relay);
	if (address)
		HASH_FIND_STR(l->hosts, address, h);
	if (h || !address) {
		free(address);
		return h;
	}
	h = mem_zalloc(sizeof *h);
	h->address = address;
	HASH_ADD_KEYPTR(hh, l->hosts, h->address, strlen(h->address), h);
	return h;
}

void learn_host_replied(struct learn_host *h, enum learn_reply reply, int64_t at_ms)
{
	h->replies++;
	h->deferred += reply == LEARN_DEFERRED;
	h->failed += reply == LEARN_FAILED;
	h->in_doubt += reply == LEARN_IN_DOUBT;
	if (reply != LEARN_IN_DOUBT)
		learn_host_serves(h, at_ms);
}

int64_t learn_ms(double seconds, int64_t most_ms)
{
	double ms = seconds * 1000 + 0.5;
	if (!(ms > 0))
		return 0;
	return ms < (double)most_ms ? (int64_t)ms : most_ms;
}

void learn_host_delays(struct learn_host *h, const char *delays)
{
	double before, queued, setup, transmission;
	if (sscanf(delays, "%lf/%lf/%lf/%lf", &before, &queued, &setup, &transmission) != 4)
		return;
	if (transmission > 0)
		numbers_add(&h->transmission_ms, learn_ms(transmission, HOURS(1)));
	if (setup <= 0)
		return;
	numbers_add(&h->setup_ms, learn_ms(setup, HOURS(1)));
	h->connections++;
}

static struct learn_span *add_span(struct learn_host *h, int64_t at_ms)
{
	h->span = mem_realloc(h->span, (size_t)(h->nspan + 1) * sizeof *h->span);
	h->span[h->nspan] = (struct learn_span){.from_ms = at_ms, .to_ms = at_ms};
	return &h->span[h->nspan++];
}

void learn_host_failed(struct learn_host *h, const char *why, int64_t at_ms)
{
	bool first = !h->out;
	assert(first || h->nspan > 0);
	struct learn_span *s = first ? add_span(h, at_ms) : &h->span[h->nspan - 1];
	h->out = true;
	if (!first && at_ms < s->to_ms + SAME_FAILURE_MS)
		return;
	s->to_ms = at_ms;
	s->failures++;
	s->silent += strstr(why, "timed out") || strstr(why, "timeout");
	s->busy += strstr(why, "421") || strcasestr(why, "too many");
}

void learn_host_serves(struct learn_host *h, int64_t at_ms)
{
	assert(!h->out || h->nspan > 0);
	if (h->out)
		h->span[h->nspan - 1].to_ms = at_ms;
	h->out = false;
}

void learn_host_limited(struct learn_host *h, int n, int64_t at_ms)
{
	if (n < 1 || (h->nlimit > 0 && h->limit[h->nlimit - 1].n == n))
		return;
	h->limit = mem_realloc(h->limit, (size_t)(h->nlimit + 1) * sizeof *h->limit);
	h->limit[h->nlimit++] = (struct learn_limit){at_ms, n};
}

bool learn_is_outage(const struct learn_span *s)
{
	return s->failures >= FAILURES_OUT ||
	       (s->failures > 1 && s->to_ms - s->from_ms >= SPAN_OUT_MS);
}

void learn_hosts_free(struct learn *l)
{
	hash_each (struct learn_host, h, l->hosts) {
		HASH_DEL(l->hosts, h);
		free(h->transmission_ms.value);
		free(h->setup_ms.value);
		free(h->span);
		free(h->limit);
		free(h->address);
		free(h);
	}
}
