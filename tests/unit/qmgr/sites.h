/* sites.h - messages to many sites, each with a host of its own, and to one that is healthy. */
#ifndef TESTS_UNIT_QMGR_SITES_H
#define TESTS_UNIT_QMGR_SITES_H

#include "tests/unit/qmgr/world.h"

static uint64_t last_id;

/* One message to a domain whose host is mx<i>.test. */
static inline void send_to_site(int i)
{
	char to[40], domain[32], hosts[64];
	snprintf(domain, sizeof domain, "d%d.test", i);
	snprintf(to, sizeof to, "x@%s", domain);
	snprintf(hosts, sizeof hosts, "10 mx%d.test 10.0.%d.%d", i, i / 200, i % 200 + 1);
	send_mail(++last_id, to);
	if (questions.n > 0)
		answer(domain, hosts);
}

static inline void send_to_healthy(void)
{
	send_mail(++last_id, "x@healthy.test");
	answer("healthy.test", "10 healthy.test 192.0.2.1");
}

static inline int connections_of(int i)
{
	char name[32];
	snprintf(name, sizeof name, "mx%d.test", i);
	return opened_to(name);
}

#endif
