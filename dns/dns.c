/* SPDX-License-Identifier: ISC */
#include "dns/dns.h"

#include "base/mem.h"
#include "dns/lookup.h"
#include "dns/ourself.h"
#include "dns/question.h"
#include "dns/validators.h"

#include <ares.h>
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

struct dns {
	struct loop *loop;
	struct questions *questions;
	struct lookups *lookups; /* NULL at the end: what comes now is freed */
};

struct dns_conf {
	struct note note;
	struct conf *conf;
	struct ourself *self;
};

static void use_conf(struct dns *d, struct dns_conf *new)
{
	if (d->lookups) {
		lookups_reload(d->lookups, new->conf, new->self);
		new->self = NULL;
		questions_reload(d->questions, new->conf);
	}
	ourself_free(&new->self);
	conf_unref(new->conf);
	free(new);
}

static void receive_note(void *owner, struct note *note)
{
	struct dns *d = owner;
	if (note->type == DNS_CONF) {
		use_conf(d, (struct dns_conf *)note);
		return;
	}
	if (note->type == DNS_VALIDATED) {
		validators_take_answer(note);
		return;
	}
	assert(note->type == RESOLVE_ASK);
	struct resolve *r = (struct resolve *)note;
	if (d->lookups)
		lookup_start(d->lookups, r);
	else
		resolve_free(&r);
}

static void received_all(void *owner)
{
	struct dns *d = owner;
	questions_work(d->questions);
}

struct dns *dns_new(struct conf *conf)
{
	uint64_t seed = 0;
	struct dns *d = mem_zalloc(sizeof *d);
	if (ares_library_init(ARES_LIB_INIT_ALL) != ARES_SUCCESS ||
	    getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed) {
		fputs("sluice: the resolver library cannot be used\n", stderr);
		abort();
	}
	d->loop = loop_new("dns", receive_note, received_all, d);
	d->questions = questions_new(d->loop, conf);
	d->lookups = lookups_new(d->questions, conf, ourself_new(conf), seed);
	return d;
}

void dns_start(struct dns *d)
{
	loop_start(d->loop);
}

void dns_stop(struct dns *d)
{
	loop_stop(d->loop);
}

void dns_free(struct dns **dp)
{
	struct dns *d = *dp;
	if (!d)
		return;
	assert(!d->loop->running);
	lookups_free(&d->lookups);
	questions_free(&d->questions);
	loop_free(&d->loop);
	ares_library_cleanup();
	free(d);
	*dp = NULL;
}

struct loop *dns_loop(struct dns *d)
{
	return d->loop;
}

void dns_reload(struct dns *d, struct conf *conf)
{
	struct dns_conf *new = mailbox_note(sizeof *new, DNS_CONF);
	new->conf = conf_ref(conf);
	new->self = ourself_new(conf); /* asks the kernel as only main may, in the sandbox */
	loop_post(d->loop, &new->note);
}
