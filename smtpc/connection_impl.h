/* connection_impl.h - what the files of a connection share.
 *
 *	connection.c		its life: events, deadlines, the end
 *	connection_stall.c	does the host owe us something for long?
 *	connection_post.c	what it says to qmgr
 *	connection_tls.c	the handshake, sessions
 *	connection_report.c	what became of it, for reports on TLS
 *
 * OWNERSHIP  As connection.h.
 * THREAD     The worker's.
 */
#ifndef SMTPC_CONNECTION_IMPL_H
#define SMTPC_CONNECTION_IMPL_H

#include "base/address.h"
#include "base/stream.h"
#include "base/tls_policy.h"
#include "base/tls_verify.h"
#include "smtpc/connection.h"
#include "base/magic.h"
#include "smtpc/engine.h"
#include "smtpc/worker.h"

enum {
	CONNECTION_MAGIC = 0xc0223ec7,
	HELLO_SMALL_MAX = 1200,	  /* bytes: it fits one segment on any path (IPv6: 1,280) */
	HELLO_TICKET_MAX = 512,	  /* bytes: what is left for a ticket in such a hello */
	HELLO_PATIENCE_MS = 5000, /* see connection.h */
};

struct connection {
	unsigned magic;
	UT_hash_handle hh; /* in the worker's table, by number */
	uint64_t number;
	struct worker *worker;
	struct connection_open *open;
	struct stream *stream;
	struct engine engine;
	struct engine_login login; /* the secret is ours; NULL: it has not come yet */
	char *secret;
	struct timer age;
	struct timer slow, late; /* until TCP stands, then until it is ready: CONNECTION_SLOW */
	struct timer silent;	 /* until it is ready, and anew with each sign of life */
	struct timer
		stall; /* when it may be stalled, or stuck; the host may have answered meanwhile */
	enum connection_slowness
		stalled;  /* as qmgr was told: stalled, stuck, awaited, or that it moves */
	int64_t waits_ms; /* steady clock: since when the host owes what it does */
	char peer[ADDRESS_PEER_MAX];
	uint64_t turn; /* the engine's, when the deadline was set */
	int64_t began_ms;
	int setup_ms, given;
	int64_t most; /* messages it may be given until it is closed; 0: any number */
	int enough; /* the host would take no more than so many, unless the next one is refused too */
	bool begun;	  /* there is a stream and an engine; else it waits for its secret */
	bool connected;	  /* TCP stands */
	bool announced;	  /* CONNECTION_READY is posted */
	bool handshaking; /* asked for, not yet done */
	bool closing;	  /* told to close before it began afresh */
	bool plain;	  /* TLS has failed: go on without */
	bool small;	  /* it is sent a small ClientHello only */
	bool large;	  /* its ClientHello is, and need not be */
	bool hello_answered;
	bool spoilt; /* the session that it resumed does not prove what is wanted: once more, */
	bool anew;   /* without any */
	bool failed_test; /* its session does not prove what a policy that is only tested wants: it is not kept */
	size_t hello_bytes;	/* 0: not sent yet */
	struct verdict *choked; /* why it is small, until qmgr is told; or NULL */
	char *demanded;		/* a policy that its login demands, or NULL */
	const char *tls;	/* the policy of its host: that, open's, or the transport's */
};

static inline bool connection_by_dane(const struct connection *c)
{
	return tls_policy_level(c->tls) == TRANSPORT_TLS_DANE;
}

/* The connection is given no more than so many in all. */
static inline void connection_keep_to(struct connection *c, int64_t messages)
{
	if (messages > 0 && (c->most == 0 || messages < c->most))
		c->most = messages;
}

void connection_stall_init(struct connection *);
void connection_wait_anew(struct connection *);
/* The host has answered, or taken something, or was asked. */

void connection_post_slow(struct connection *, enum connection_slowness);
void connection_post_ready(struct connection *);
void connection_post_back(struct delivery *);
void connection_post_done(struct connection *); /* every delivery that is done or returned */
void connection_post_closed(struct connection *, struct verdict *why); /* takes why */
void connection_log(const struct connection *, const char *what, const char *reason);

void connection_start_tls(struct connection *);
bool connection_choked(const struct connection *);
/* The engine is closed: did the handshake fail before a ServerHello came, after a large ClientHello? */

void connection_shaken(struct connection *);
/* The handshake is done: is it who it should be? The engine goes on, or is closed. */

void connection_lacks_tls(const struct connection *);
/* The engine is closed: if that was for want of TLS, say so. */

void connection_report(const struct connection *, enum tls_result_type, const char *reason);
/* To whom reports on TLS are made, where they are. reason may be NULL. */

void connection_report_shaken(const struct connection *, enum tls_verified, const char *reason);
/* The same, of a handshake that is done. */

void connection_failed_test(const struct connection *, const char *reason);
/* Where MTA-STS is only tested, say that it would not have been content. */

void connection_log_unverified(const struct connection *, const char *reason);
void connection_forget_session(struct connection *);

#endif
