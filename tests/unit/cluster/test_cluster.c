/* SPDX-License-Identifier: ISC */
/* A node's part of the cluster as a whole, from its start to its end, without a Redis. */
#include "tests/unit/base/unit.h"

#include "base/conf.h"
#include "base/mem.h"
#include "cluster/cluster.h"

#include <stdlib.h>

static unsigned seed[2];
static int nseeds;

void srandom(unsigned with)
{
	seed[nseeds++ % 2] = with;
}

static void receive(void *owner, struct note *n)
{
	struct cluster_view *view = (struct cluster_view *)n;
	(void)owner;
	if (n->type == CLUSTER_VIEW)
		cluster_view_free(&view);
	else
		free(n);
}

/* How long each waits between two tries is left to chance. */
static void two_nodes_that_start_do_not_draw_the_same(void **state)
{
	struct conf *conf = conf_defaults();
	struct loop *l = loop_new("test", receive, NULL, NULL);
	const struct cluster_edges edges = {
		.dns = l, .main = l, .qmgr = l, .watcher = l, .limiter = l};
	(void)state;
	free(conf->cluster.redis);
	conf->cluster.redis = mem_strdup("unix:/none/redis");
	for (int i = 0; i < 2; i++) {
		struct cluster *c = cluster_new(conf, "test", &edges);
		cluster_start(c);
		cluster_stop(c);
		cluster_free(&c);
	}
	assert_int_equal(nseeds, 2);
	assert_int_not_equal(seed[0], seed[1]);
	loop_free(&l);
	conf_unref(conf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_nodes_that_start_do_not_draw_the_same),
	};
	return RUN(tests);
}
