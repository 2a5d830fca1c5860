/* SPDX-License-Identifier: ISC */
#include "dns/dnssec.h"

#include "base/address.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"

#include <assert.h>
#include <stdlib.h>

struct dnssec {
	struct loop *loop;
	struct conf *conf;
	void (*changed)(void *owner);
	void *owner;
	bool near; /* DNSSEC_TRUST: all servers are on this machine */
	struct trust_anchor anchor;
	struct probe *probe;	       /* DNSSEC_VALIDATE with an anchor; or NULL */
	struct validators *validators; /* PROBE_DNSSEC; NULL where none can be set up */
};

static void drop_validators(struct dnssec *d)
{
	metrics_add(METRIC_dnssec_validating, d->validators ? -1 : 0);
	validators_free(&d->validators);
}

static void on_changed(void *owner)
{
	struct dnssec *d = owner;
	union address server[PROBE_SERVERS_MAX];
	int n = probe_servers(d->probe, server);
	drop_validators(d);
	if (n > 0)
		d->validators = validators_new(d->loop, d->conf, &d->anchor, server, n);
	metrics_add(METRIC_dnssec_validating, d->validators ? 1 : 0);
	d->changed(d->owner);
}

static void begin_to_trust(struct dnssec *d, const union address *server, int n)
{
	char where[ADDRESS_WHERE_MAX];
	d->near = n > 0;
	for (int i = 0; i < n && d->near; i++)
		if (!address_is_loopback(&server[i])) {
			log_event(LOG_LEVEL_WARNING, "dnssec", "server",
				  address_where(&server[i], where), "validated", "no", "reason",
				  "it is not on this machine: its AD bit is not believed", NULL);
			d->near = false;
		}
}

static void begin_to_validate(struct dnssec *d, const union address *server, int n)
{
	struct buf why = {0};
	if (trust_anchor_read(&d->anchor, d->conf->dns.trust_anchor, &why))
		d->probe = probe_new(d->loop, &d->conf->dns, server, n, on_changed, d);
	else
		log_event(LOG_LEVEL_WARNING, "dnssec", "validated", "no", "reason", buf_cstr(&why),
			  NULL);
	buf_fini(&why);
}

struct dnssec *dnssec_new(struct loop *loop, struct conf *conf, const struct channel *channel,
			  void (*changed)(void *owner), void *owner)
{
	union address server[PROBE_SERVERS_MAX];
	int n = channel_servers(channel, server, PROBE_SERVERS_MAX);
	struct dnssec *d = mem_zalloc(sizeof *d);
	d->loop = loop;
	d->conf = conf_ref(conf);
	d->changed = changed;
	d->owner = owner;
	if (conf->dns.dnssec == DNSSEC_VALIDATE)
		begin_to_validate(d, server, n);
	else if (conf->dns.dnssec == DNSSEC_TRUST)
		begin_to_trust(d, server, n);
	return d;
}

void dnssec_free(struct dnssec **dp)
{
	struct dnssec *d = *dp;
	if (!d)
		return;
	probe_free(&d->probe);
	drop_validators(d);
	trust_anchor_fini(&d->anchor);
	conf_unref(d->conf);
	free(d);
	*dp = NULL;
}

enum dnssec_way dnssec_way(struct dnssec *d)
{
	if (!d->probe)
		return DNSSEC_CHANNEL;
	probe_again(d->probe);
	switch (probe_state(d->probe)) {
	case PROBE_ASKING:
		return DNSSEC_WAIT;
	case PROBE_DNSSEC:
		return DNSSEC_VALIDATOR;
	case PROBE_SILENT:
	case PROBE_NONE:
		break;
	}
	return DNSSEC_CHANNEL;
}

enum query_edns dnssec_edns(const struct dnssec *d)
{
	if (d->probe)
		return probe_edns(d->probe);
	return d->near ? QUERY_EDNS_DO : QUERY_EDNS;
}

bool dnssec_believes(struct dnssec *d)
{
	if (!d->probe)
		return true;
	probe_alive(d->probe);
	return probe_state(d->probe) == PROBE_NONE;
}

enum resolve_security dnssec_security(const struct dnssec *d, bool authentic)
{
	return d->near && authentic ? RESOLVE_SECURE : RESOLVE_INDETERMINATE;
}

void dnssec_ask(struct dnssec *d, const char *name, enum answer_type type, struct validation *asker)
{
	assert(d->probe && probe_state(d->probe) == PROBE_DNSSEC);
	if (d->validators)
		validators_ask(d->validators, name, type, asker);
	else
		asker->validated(asker, &(struct validator_reply){.event = CHANNEL_FAILED});
}
