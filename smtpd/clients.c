/* SPDX-License-Identifier: ISC */
#include "smtpd/clients.h"

#include "base/gcra.h"
#include "base/keyed_hash.h"
#include "base/mem.h"

#include <arpa/inet.h>
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 4096, SHARES = 64, LOOPBACK = 127, LOOK_US = 1000000 };

static const char shared_as[] = "connect/";

struct key {
	unsigned char bytes[8];
	int family, listener;
};

struct client {
	struct client *next;
	struct key key;
	int64_t connections;
	struct gcra connects; /* steady clock */
	uint64_t told;	      /* to the other nodes, in a cluster, */
	int64_t step_us;      /* by this rate */
	int64_t looked_us;    /* steady clock: when they were asked last */
};

/* A listener's name, the same on all nodes; it never changes. */
struct title {
	struct title *next;
	int listener;
	char text[];
};

struct clients {
	pthread_mutex_t lock[SHARES]; /* bucket % SHARES */
	struct client *bucket[BUCKETS];
	struct loop *reply_to;
	void (*to_cluster)(void *context, struct note *); /* NULL: there is none */
	void *context;
	atomic_long parts;
	pthread_mutex_t title_lock;
	struct title *titles; /* of listeners with a rate */
};

static void make_key(struct key *k, const union address *a, int listener)
{
	memset(k, 0, sizeof *k);
	assert(a->sa.sa_family == AF_INET || a->sa.sa_family == AF_INET6);
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
static struct client *find_client(struct client **link, const struct key *k, int64_t now_us)
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

static void remember_title(struct clients *t, int listener, const char *text)
{
	pthread_mutex_lock(&t->title_lock);
	struct title *k = t->titles;
	while (k && k->listener != listener)
		k = k->next;
	if (!k) {
		size_t size = strlen(text) + 1;
		k = mem_zalloc(sizeof *k + size);
		k->listener = listener;
		memcpy(k->text, text, size);
		k->next = t->titles;
		t->titles = k;
	}
	pthread_mutex_unlock(&t->title_lock);
}

static bool find_listener(struct clients *t, const char *text, size_t len, int *listener)
{
	pthread_mutex_lock(&t->title_lock);
	const struct title *k = t->titles;
	while (k && (strlen(k->text) != len || memcmp(k->text, text, len) != 0))
		k = k->next;
	if (k)
		*listener = k->listener;
	pthread_mutex_unlock(&t->title_lock);
	return k != NULL;
}

/* With its share of the table locked, so that what is told comes in order. n 0: none has come, but what all
 * have had is wanted. */
static void tell_cluster(struct clients *t, struct client *c, const struct conf_listener *limits,
			 int64_t n)
{
	unsigned char address[sizeof(struct in6_addr)] = {0};
	char text[INET6_ADDRSTRLEN];
	if (c->told == 0)
		remember_title(t, c->key.listener, limits->title);
	memcpy(address, c->key.bytes, sizeof c->key.bytes);
	inet_ntop(c->key.family, address, text, sizeof text);
	char *key = mem_printf("%s%s/%s", shared_as, limits->title, text);
	struct sharing_spent *s = sharing_spent_new(t->reply_to, key, &limits->client_rate_limit);
	c->told += (uint64_t)n;
	c->step_us = gcra_interval_us(&limits->client_rate_limit);
	s->n = n;
	s->told = c->told;
	t->to_cluster(t->context, &s->note);
	free(key);
}

/* A client that used up a narrower rate, before a reload, does not wait for that under this one. Several nodes may have let pass
 * more than there was room for, before they knew of each other: that is waited for. */
static void forget_narrower(const struct clients *t, struct client *c, const struct conf_rate *r,
			    int64_t now_us)
{
	int64_t per_us = r->per_ms * 1000, most_us = now_us + (t->to_cluster ? 2 : 1) * per_us;
	if (c->connects.next_us > most_us)
		c->connects.next_us = most_us - per_us;
}

static enum clients_answer judge_rate(struct clients *t, struct client *c,
				      const struct conf_listener *limits, int64_t now_us)
{
	struct conf_rate rate = gcra_part(&limits->client_rate_limit, t->parts);
	forget_narrower(t, c, &rate, now_us);
	bool room = gcra_due_us(&c->connects, &rate, gcra_burst_us(&rate)) <= now_us;
	if (room)
		gcra_count(&c->connects, &rate, now_us);
	if (t->to_cluster && (room || now_us >= c->looked_us + LOOK_US)) {
		c->looked_us = now_us;
		tell_cluster(t, c, limits, room);
	}
	return room ? CLIENTS_WELCOME : CLIENTS_TOO_OFTEN;
}

static enum clients_answer judge_client(struct clients *t, struct client *c,
					const struct conf_listener *limits, int64_t now_us)
{
	if (limits->client_connection_limit && c->connections >= limits->client_connection_limit)
		return CLIENTS_TOO_MANY;
	if (limits->client_rate_limit.events == 0)
		return CLIENTS_WELCOME;
	return judge_rate(t, c, limits, now_us);
}

enum clients_answer clients_enter(struct clients *t, const union address *a, int listener,
				  const struct conf_listener *limits, int64_t now_us)
{
	struct key k;
	make_key(&k, a, listener);
	unsigned b = bucket_of(&k);
	pthread_mutex_lock(&t->lock[b % SHARES]);
	struct client *c = find_client(&t->bucket[b], &k, now_us);
	if (!c) {
		c = mem_zalloc(sizeof *c);
		c->key = k;
		c->next = t->bucket[b];
		t->bucket[b] = c;
	}
	enum clients_answer answer = judge_client(t, c, limits, now_us);
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
	struct client *c = find_client(&t->bucket[b], &k, 0);
	assert(c && c->connections > 0);
	c->connections--;
	pthread_mutex_unlock(&t->lock[b % SHARES]);
}

void clients_share(struct clients *t, struct loop *reply_to,
		   void (*to_cluster)(void *context, struct note *), void *context)
{
	t->reply_to = reply_to;
	t->to_cluster = to_cluster;
	t->context = context;
}

void clients_parts(struct clients *t, int64_t parts)
{
	assert(parts > 0);
	t->parts = (long)parts;
}

/* Whom a name of ours means. */
static bool read_key(struct clients *t, const char *name, struct key *k)
{
	unsigned char address[sizeof(struct in6_addr)];
	size_t head = strlen(shared_as);
	const char *slash = strrchr(name, '/');
	if (strncmp(name, shared_as, head) != 0 || slash < name + head)
		return false;
	memset(k, 0, sizeof *k);
	k->family = strchr(slash, ':') ? AF_INET6 : AF_INET;
	if (inet_pton(k->family, slash + 1, address) != 1)
		return false;
	memcpy(k->bytes, address, k->family == AF_INET6 ? 8 : 4);
	return find_listener(t, name + head, (size_t)(slash - name) - head, &k->listener);
}

bool clients_total(struct clients *t, const struct sharing_total *all)
{
	struct key k;
	if (!read_key(t, all->key, &k))
		return false;
	unsigned b = bucket_of(&k);
	pthread_mutex_lock(&t->lock[b % SHARES]);
	struct client *c = find_client(&t->bucket[b], &k, 0);
	if (c) { /* a record that was dropped and is new has told of less */
		uint64_t since = c->told > all->through ? c->told - all->through : 0;
		c->connects.next_us = all->next_us + (int64_t)since * c->step_us;
	}
	pthread_mutex_unlock(&t->lock[b % SHARES]);
	return true;
}

struct clients *clients_new(void)
{
	struct clients *t = mem_zalloc(sizeof *t);
	t->parts = 1;
	pthread_mutex_init(&t->title_lock, NULL);
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
	pthread_mutex_destroy(&t->title_lock);
	while (t->titles) {
		struct title *k = t->titles;
		t->titles = k->next;
		free(k);
	}
	free(t);
	*tp = NULL;
}
