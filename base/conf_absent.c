/* SPDX-License-Identifier: ISC */
/* Stands in for conf_cluster.c and conf_nats.c where sluice is built with CLUSTER=no. */
#include "base/conf_build.h"

#define FAULT(place, setting)                                                                      \
	conf_fault(faults, c->file, conf_lines_find(lines, (place), -1, 1),                        \
		   "cluster: " setting ": this sluice was built without its cluster")

void conf_cluster_check(const struct conf *c, const struct conf_lines *lines,
			struct conf_faults *faults)
{
	if (*c->cluster.redis)
		FAULT(&c->cluster.redis, "redis");
}

void conf_nats_check(const struct conf *c, const struct conf_lines *lines,
		     struct conf_faults *faults)
{
	if (*c->cluster.nats)
		FAULT(&c->cluster.nats, "nats");
	if (c->cluster.replicate != REPLICATE_OFF)
		FAULT(&c->cluster.replicate, "replicate");
}
