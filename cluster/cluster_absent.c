/* SPDX-License-Identifier: ISC */
/* Stands in for this folder where sluice is built with CLUSTER=no: no configuration with Redis is accepted, so
 * there is no cluster, and nobody has an order or a question for one. node_text.c is there all the same. */
#include "cluster/cluster.h"

#include <assert.h>
#include <stdlib.h>

bool cluster_built(void)
{
	return false;
}

struct cluster *cluster_new(struct conf *conf, const char *version,
			    const struct cluster_edges *edges)
{
	(void)version, (void)edges;
	assert(!*conf->cluster.redis);
	return NULL;
}

void cluster_recall(struct cluster *c, const char *text)
{
	(void)text;
	assert(!c);
}

void cluster_begin(struct cluster *c)
{
	assert(!c);
}

void cluster_start(struct cluster *c)
{
	assert(!c);
}

/* Whoever has a cluster asks for its loop. */
struct loop *cluster_loop(struct cluster *c)
{
	(void)c;
	abort();
}

void cluster_stop(struct cluster *c)
{
	assert(!c);
}

void cluster_free(struct cluster **cp)
{
	assert(!*cp);
}

struct cluster_order *cluster_order_new(enum cluster_kind kind, enum order verb, const char *name,
					struct loop *reply_to, void *owner)
{
	(void)kind, (void)verb, (void)name, (void)reply_to, (void)owner;
	abort();
}

void cluster_order_free(struct cluster_order **op)
{
	assert(!*op);
}

struct cluster_inquiry *cluster_inquiry_new(const char *question, struct loop *reply_to,
					    void *owner)
{
	(void)question, (void)reply_to, (void)owner;
	abort();
}

void cluster_inquiry_free(struct cluster_inquiry **sp)
{
	assert(!*sp);
}

void cluster_asked_free(struct cluster_asked **ap)
{
	assert(!*ap);
}

void cluster_view_free(struct cluster_view **vp)
{
	assert(!*vp);
}
