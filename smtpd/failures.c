/* SPDX-License-Identifier: ISC */
#include "smtpd/failures.h"

#include "base/keyed_hash.h"
#include "base/mem.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
	PLACES = 1 << 16,
	FORGOTTEN_S = 600,
	COUNT_BITS = 8, /* the rest is the second of the last one */
	COUNT_MAX = (1 << COUNT_BITS) - 1,
	DOUBLED_MAX = 4,
};

struct failures {
	_Atomic uint64_t place[PLACES];
};

struct failures *failures_new(void)
{
	return mem_zalloc(sizeof(struct failures));
}

void failures_free(struct failures **f)
{
	free(*f);
	*f = NULL;
}

static int note_failure(struct failures *f, const void *key, size_t len, uint64_t now_s)
{
	_Atomic uint64_t *place = &f->place[keyed_hash(key, len) % PLACES];
	uint64_t was = atomic_load_explicit(place, memory_order_relaxed), is;
	do {
		bool old = (was >> COUNT_BITS) + FORGOTTEN_S < now_s;
		uint64_t count = old ? 0 : was & COUNT_MAX;
		is = now_s << COUNT_BITS | (count < COUNT_MAX ? count + 1 : count);
	} while (!atomic_compare_exchange_weak_explicit(place, &was, is, memory_order_relaxed,
							memory_order_relaxed));
	return (int)(is & COUNT_MAX);
}

/* An IPv6 client has a whole /64. */
static int note_client(struct failures *f, const union address *client, uint64_t now_s)
{
	unsigned char key[9] = {client->sa.sa_family == AF_INET6};
	if (key[0])
		memcpy(key + 1, &client->in6.sin6_addr, 8);
	else
		memcpy(key + 1, &client->in.sin_addr, 4);
	return note_failure(f, key, sizeof key, now_s);
}

int failures_note(struct failures *f, const union address *client, const char *login,
		  int64_t now_ms)
{
	/* A table that was never written to is not of the last ten minutes. */
	uint64_t now_s = (uint64_t)(now_ms / 1000) + FORGOTTEN_S + 1;
	int of_client = note_client(f, client, now_s);
	int of_login = login ? note_failure(f, login, strlen(login), now_s) : 0;
	return of_client > of_login ? of_client : of_login;
}

int64_t failures_delay(int64_t delay_ms, int failures)
{
	int doubled = failures > DOUBLED_MAX ? DOUBLED_MAX : failures - 1;
	return delay_ms << (doubled > 0 ? doubled : 0);
}
