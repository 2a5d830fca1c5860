/* SPDX-License-Identifier: ISC */
/* Stands in for this folder where sluice is built with CLUSTER=no: no configuration with NATS is accepted, so there is
 * neither a copy of the queue nor a node. life.c is there all the same: a folder whose queue another node has taken up is put
 * aside by any sluice. */
#include "replica/node.h"
#include "replica/replica.h"

#include <assert.h>
#include <stdlib.h>

struct replica *replica_new(struct conf *conf, struct spool *spool)
{
	(void)spool;
	assert(conf->cluster.replicate == REPLICATE_OFF);
	return NULL;
}

void replica_start(struct replica *r)
{
	assert(!r);
}

bool replica_stop(struct replica *r, bool hands_over)
{
	(void)hands_over;
	assert(!r);
	return true;
}

void replica_free(struct replica **rp)
{
	assert(!*rp);
}

/* Nobody has a node to give it to. */
struct node_order *node_order_new(enum node_op op, const char *name, struct loop *reply_to,
				  void *owner)
{
	(void)op, (void)name, (void)reply_to, (void)owner;
	abort();
}

void node_order_free(struct node_order **op)
{
	assert(!*op);
}

struct node *node_new(struct conf *conf, struct spool *spool, struct replica *replica,
		      struct loop *to, struct buf *error)
{
	(void)conf, (void)spool, (void)to, (void)error;
	assert(!replica);
	return NULL;
}

void node_watch(struct node *n, struct loop *watcher)
{
	(void)watcher;
	assert(!n);
}

void node_start(struct node *n)
{
	assert(!n);
}

void node_wait(const struct node *n)
{
	assert(!n);
}

void node_reload(struct node *n, struct conf *conf)
{
	(void)conf;
	assert(!n);
}

void node_post(struct node *n, struct node_order *o)
{
	(void)n, (void)o;
	abort();
}

void node_drain(struct node *n)
{
	(void)n;
	abort();
}

bool node_drains(const struct node *n)
{
	assert(!n);
	return false;
}

void node_interrupt(struct node *n)
{
	assert(!n);
}

const char *node_stop(struct node *n, bool whole)
{
	(void)whole;
	assert(!n);
	return NULL;
}

void node_free(struct node **np)
{
	assert(!*np);
}
