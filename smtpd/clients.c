/* SPDX-License-Identifier: ISC */
#include "smtpd/clients.h"

#include "base/gcra.h"
#include "base/keyed_hash.h"
#include "base/mem.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 4096, SHARES = 64, LOOPBACK = 127 };

struct key {
	unsigned char bytes[8];
	int family, listener;
};

struct client {
	struct client *next;
	struct key key;
	int64_t connections;
	struct gcra connects; /* steady clock */
};

struct clients {
	pthread_mutex_t lock[SHARES]; /* bucket % SHARES */
	struct client *bucket[BUCKETS];
};

static void make_key(struct key *k, const union address *a, int listener)
{
	memset(k, 0, sizeof *k);
	k->family = a->sa.sa_family;
	k->listener = listener;
	if (k->family == AF_INET6)
		memcpy(k->bytes, &a->in6.sin6_addr, 8);
	else
		memcpy(k->bytes, &a->in.sin_addr, 4);
	if (k->family == AF_INET && k->bytes[0] == LOOPBACK)
		memset(k->bytes + 1, 0, 3);
}

static unsigned bucket_of(const struct key *k)
{
	return (unsigned)keyed_hash(k, sizeof *k) % BUCKETS;
}

/* Find a record, and free those that stand for nothing on the way. */
static struct client *find(struct client **link, const struct key *k, int64_t now_us)
{
	while (*link) {
		struct client *c = *link;
		if (memcmp(&c->key, k, sizeof *k) == 0)
			return c;
		if (c->connections == 0 && c->connects.next_us <= now_us) {
			*link = c->next;
			free(c);
		} else {
			link = &c->next;
		}
	}
	return NULL;
}

static enum clients_answer judge(struct client *c, const struct conf_listener *limits,
				 int64_t now_us)
{
	const struct conf_rate *rate = &limits->client_rate_limit;
	if (limits->client_connection_limit && c->connections >= limits->client_connection_limit)
		return CLIENTS_TOO_MANY;
	if (rate->events > 0 && gcra_due_us(&c->connects, rate, gcra_burst_us(rate)) > now_us)
		return CLIENTS_TOO_OFTEN;
	gcra_count(&c->connects, rate, now_us);
	return CLIENTS_WELCOME;
}

enum clients_answer clients_enter(struct clients *t, const union address *a, int listener,
				  const struct conf_listener *limits, int64_t now_us)
{
	struct key k;
	make_key(&k, a, listener);
	unsigned b = bucket_of(&k);
	pthread_mutex_lock(&t->lock[b % SHARES]);
	struct client *c = find(&t->bucket[b], &k, now_us);
	if (!c) {
		c = mem_zalloc(sizeof *c);
		c->key = k;
		c->next = t->bucket[b];
		t->bucket[b] = c;
	}
	enum clients_answer answer = judge(c, limits, now_us);
	if (answer == CLIENTS_WELCOME)
		c->connections++;
	pthread_mutex_unlock(&t->lock[b % SHARES]);
	return answer;
}

void clients_leave(struct clients *t, const union address *a, int listener)
{
	struct key k;
	make_key(&k, a, listener);
	unsigned b = bucket_of(&k);
	pthread_mutex_lock(&t->lock[b % SHARES]);
	struct client *c = find(&t->bucket[b], &k, 0);
	assert(c && c->connections > 0);
	c->connections--;
	pthread_mutex_unlock(&t->lock[b % SHARES]);
}

struct clients *clients_new(void)
{
	struct clients *t = mem_zalloc(sizeof *t);
	for (int i = 0; i < SHARES; i++)
		pthread_mutex_init(&t->lock[i], NULL);
	return t;
}

void clients_free(struct clients **tp)
{
	struct clients *t = *tp;
	if (!t)
		return;
	for (int i = 0; i < BUCKETS; i++)
		while (t->bucket[i]) {
			struct client *c = t->bucket[i];
			t->bucket[i] = c->next;
			free(c);
		}
	for (int i = 0; i < SHARES; i++)
		pthread_mutex_destroy(&t->lock[i]);
	free(t);
	*tp = NULL;
}
