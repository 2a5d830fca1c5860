/* SPDX-License-Identifier: ISC */
#include "cluster/cluster.h"

#include "base/clock.h"
#include "base/mem.h"
#include "cluster/facts.h"
#include "cluster/link.h"
#include "cluster/nodes.h"
#include "cluster/orders.h"
#include "cluster/shares.h"
#include "cluster/inquiry.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/random.h>

struct cluster {
	struct loop *loop;
	struct link *link;
	struct facts *facts;
	struct orders *orders;
	struct nodes *nodes;
	struct inquiries *inquiries;
	struct shares *shares;
	bool stopped;
};

/* A note that comes after the end. */
static void drop_note(struct note *note)
{
	switch (note->type) {
	case FACT_SEEN:
		fact_free(&(struct fact *){(struct fact *)note});
		break;
	case FACT_PROBE:
		fact_probe_free(&(struct fact_probe *){(struct fact_probe *)note});
		break;
	case RESOLVE_ANSWER:
		resolve_free(&(struct resolve *){(struct resolve *)note});
		break;
	case CLUSTER_ORDER:
		cluster_order_free(&(struct cluster_order *){(struct cluster_order *)note});
		break;
	case CLUSTER_INQUIRY:
		cluster_inquiry_free(&(struct cluster_inquiry *){(struct cluster_inquiry *)note});
		break;
	case CLUSTER_TOLD:
		cluster_asked_free(&(struct cluster_asked *){(struct cluster_asked *)note});
		break;
	case SHARING_WANT:
	case SHARING_NEED:
	case SHARING_SPENT:
		free(note);
		break;
	default:
		assert(0 && "a note that cluster does not know");
	}
}

static void receive_note(void *owner, struct note *note)
{
	struct cluster *c = owner;
	if (c->stopped) {
		drop_note(note);
		return;
	}
	switch (note->type) {
	case FACT_SEEN:
		facts_seen(c->facts, (struct fact *)note);
		break;
	case FACT_PROBE:
		facts_probe(c->facts, (struct fact_probe *)note);
		break;
	case RESOLVE_ANSWER:
		link_resolved(c->link, (struct resolve *)note);
		break;
	case CLUSTER_ORDER:
		orders_give(c->orders, (struct cluster_order *)note);
		break;
	case CLUSTER_INQUIRY:
		inquiries_ask(c->inquiries, (struct cluster_inquiry *)note);
		break;
	case CLUSTER_TOLD:
		inquiries_told(c->inquiries, (struct cluster_asked *)note);
		break;
	default:
		if (!shares_take(c->shares, note))
			assert(0 && "a note that cluster does not know");
	}
}

bool cluster_built(void)
{
	return true;
}

struct cluster *cluster_new(struct conf *conf, const char *version,
			    const struct cluster_edges *edges)
{
	const char *name = *conf->cluster.name ? conf->cluster.name : conf->own_name;
	if (!*conf->cluster.redis)
		return NULL;
	struct cluster *c = mem_zalloc(sizeof *c);
	c->loop = loop_new("cluster", receive_note, NULL, c);
	c->link = link_new(c->loop, edges->dns, conf);
	link_reach(c->link, edges->redis);
	c->nodes = nodes_new(c->loop, c->link, name, version, edges);
	c->facts = facts_new(c->link, name, c->nodes, edges->qmgr);
	c->orders = orders_new(c->link, name, edges->main);
	c->inquiries = inquiries_new(c->loop, c->link, name, c->nodes, edges->main);
	c->shares = shares_new(c->loop, c->link, name, c->nodes);
	shares_watch(c->shares, edges->limiter);
	return c;
}

void cluster_recall(struct cluster *c, const char *text)
{
	assert(!c->loop->running);
	orders_recall(c->orders, text);
}

void cluster_begin(struct cluster *c)
{
	assert(!c->stopped && !c->loop->running);
	link_begin(c->link);
	nodes_start(c->nodes);
}

/* The library's own seed is the same in each process: all nodes would come back to Redis in the same moments. */
static void seed_chance(void)
{
	unsigned seed = 0;
	if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed)
		seed = (unsigned)clock_steady_us();
	srandom(seed);
}

void cluster_start(struct cluster *c)
{
	seed_chance();
	cluster_begin(c);
	loop_start(c->loop);
}

struct loop *cluster_loop(struct cluster *c)
{
	return c->loop;
}

/* The link answers what it still has to those who asked, so it goes first. */
void cluster_stop(struct cluster *c)
{
	if (c->stopped)
		return;
	loop_stop(c->loop);
	c->stopped = true;
	shares_stop(c->shares);
	link_free(&c->link);
	shares_free(&c->shares);
	facts_free(&c->facts);
	orders_free(&c->orders);
	inquiries_free(&c->inquiries);
	nodes_free(&c->nodes);
}

void cluster_free(struct cluster **cp)
{
	struct cluster *c = mem_take(cp);
	if (!c)
		return;
	cluster_stop(c);
	loop_free(&c->loop);
	free(c);
}
