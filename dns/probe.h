/* probe.h - which name servers pass on signatures.
 *
 *	probe_new --> three questions to each server --> changed(): probe_state() is known
 *
 * A server passes when it gives the root's keys with their signatures, and a signed denial. What is
 * found is said once in the log. A server that passed is not judged again until the next reload: one
 * that stops to give signatures makes answers bogus, as it must. The others are tried again by
 * probe_again(), after 10 minutes, or after 30 s where a reply was missing or the server is failing.
 *
 * STATES     PROBE_ASKING until the first round is over; then one of the rest. A round that tries
 *            servers again leaves the state as it is until it is over.
 * OWNERSHIP  The owner's; probe_free() from anywhere but changed().
 * THREAD     dns.
 * ERRORS     None.
 * SEE        RFC 8027 (what middleboxes do to DNSSEC); RFC 4035 3.2.1 (DO).
 */
#ifndef DNS_PROBE_H
#define DNS_PROBE_H

#include "base/conf.h"
#include "base/loop.h"
#include "dns/query.h"

enum probe_state {
	PROBE_ASKING, /* nothing is known: questions must wait */
	PROBE_SILENT, /* no server answers anything but SERVFAIL */
	PROBE_NONE,   /* servers answer, and none of them gives signatures */
	PROBE_DNSSEC, /* at least one does */
};

enum { PROBE_SERVERS_MAX = 16 };

struct probe;

struct probe *probe_new(struct loop *, const struct conf_dns *, const union address *server,
			int nserver, void (*changed)(void *owner), void *owner);
/* Settings and servers are only lent. changed() is called after each round that found something new, never
 * from within another function of probe. */

void probe_free(struct probe **);

enum probe_state probe_state(const struct probe *);

enum query_edns probe_edns(const struct probe *);
/* PROBE_NONE: how the servers are to be asked; QUERY_PLAIN where one of them chokes on EDNS. */

int probe_servers(const struct probe *, union address server[PROBE_SERVERS_MAX]);
/* Those that passed. */

void probe_again(struct probe *);
/* Begin another round if one is due. Cheap; call it with each question. */

void probe_alive(struct probe *);
/* PROBE_SILENT, and yet a reply has come to an ordinary question: begin a round, as PROBE_ASKING. Servers
 * that are silent again are taken for PROBE_NONE then. */

#endif
