/* SPDX-License-Identifier: ISC */
#include "base/delivery.h"

#include "base/mem.h"
#include "base/tls_dane.h"

#include <assert.h>
#include <stdlib.h>

struct connection_open *connection_open_new(uint64_t connection, struct conf *conf,
					    const struct conf_transport *transport,
					    const char *host, const union address *address)
{
	struct connection_open *o = mailbox_note(sizeof *o, CONNECTION_OPEN);
	o->connection = connection;
	o->conf = conf_ref(conf);
	o->transport = transport;
	o->host = mem_strdup(host);
	o->address = *address;
	return o;
}

void connection_open_free(struct connection_open **op)
{
	struct connection_open *o = mem_take(op);
	if (!o)
		return;
	conf_unref(o->conf);
	verdict_unref(o->choked);
	verdict_unref(o->why);
	credential_unref(o->credential);
	tls_subject_unref(o->subject);
	tls_dane_unref(o->dane);
	free(o->host);
	free(o->tls);
	free(o->site);
	free(o);
}

static struct delivery *begin_delivery(struct delivery *d, uint32_t nrcpt)
{
	assert(nrcpt > 0);
	d->note.type = DELIVERY_GIVE;
	d->nrcpt = nrcpt;
	return d;
}

struct delivery *delivery_new(uint32_t nrcpt)
{
	struct delivery *d = mem_zalloc(sizeof *d + nrcpt * sizeof d->rcpt[0]);
	return begin_delivery(d, nrcpt);
}

struct delivery *delivery_new_few(struct few *of)
{
	assert(of->size == DELIVERY_OF_ONE);
	return begin_delivery(few_take(of), 1);
}

static void drop_references(struct delivery *d)
{
	for (uint32_t i = 0; i < d->nrcpt; i++)
		verdict_unref(d->rcpt[i].verdict);
	verdict_unref(d->reason);
	verdict_unref(d->refusal);
	content_unref(d->content);
}

void delivery_free(struct delivery **dp)
{
	struct delivery *d = mem_take(dp);
	if (!d)
		return;
	drop_references(d);
	free(d);
}

void delivery_free_few(struct delivery **dp, struct few *of)
{
	struct delivery *d = *dp;
	if (d->nrcpt > 1) {
		delivery_free(dp);
		return;
	}
	assert(of->size == DELIVERY_OF_ONE && d->nrcpt == 1);
	drop_references(d);
	few_give(of, d);
	*dp = NULL;
}
