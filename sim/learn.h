/* learn.h - makes a scenario from the log of a relay, to be run with other settings.
 *
 *	log --> [ event ] --> [ learn: domains, sites ] --> [ learn_host: times, failures, limits ]
 *	                                    |         \-> [ learn_bucket: what it let through ]
 *	                                    |                              |
 *	                                    +---------> learn_write -------+--> text of a scenario
 *
 *	queued                          when the log begins; arrivals refer to the log itself (trace.h)
 *	sent, deferred, bounced, in_doubt   of a recipient: its domain, site, transport; of the host:
 *	                                delays, replies, failures
 *	host                            limits, and when it was out
 *	pace                            from when on a site let only so much through
 *
 * Addresses are the hosts: what several sites have in common stays common. Times are medians. What a
 * log does not tell is assumed: that hosts take PIPELINING, and that those which nothing was delivered
 * to are like any other.
 *
 * OWNERSHIP  learn_scenario() makes all, and frees it.
 * THREAD     main.
 * ERRORS     In errors, as "FILE:LINE: what is wrong".
 * SEE        sluice(8), "LOG"; sluice-sim(5), "LEARNING".
 */
#ifndef SIM_LEARN_H
#define SIM_LEARN_H

#include "base/buf.h"
#include "sim/tally.h"

#include <stdbool.h>
#include <stdint.h>

/* Spans in which only failures came. */
struct learn_span {
	int64_t from_ms, to_ms; /* since the start of the log */
	int failures;
	int silent, busy; /* of them: timed out; 421 */
};

struct learn_limit {
	int64_t at_ms;
	int n;
};

struct learn_host {
	char *address;
	struct numbers transmission_ms, setup_ms;
	int64_t replies, deferred, failed, in_doubt; /* of recipients */
	int64_t connections;
	bool out; /* the last span is under way */
	int nspan;
	struct learn_span *span; /* of one failure or more */
	int nlimit;
	struct learn_limit *limit;
	UT_hash_handle hh;
};

struct learn_mx {
	char *name;
	struct learn_host *host;
	struct learn_mx *next;
};

/* A recipient was in the queue, and free to go, from then on until it went. */
struct learn_wait {
	int64_t from_ms, to_ms; /* since the start of the log */
};

struct learn_site {
	char *key; /* transport and name, or dsn where there are no hosts */
	char *name, *transport;
	struct learn_mx *mx; /* NULL: no hosts were found */
	char *refusal;	     /* what it said when it first had a pace; NULL: it has none */
	int64_t refused_ms;
	int nwait;
	struct learn_wait *wait; /* of each recipient that it took */
	UT_hash_handle hh;
};

struct learn_domain {
	char *name;
	struct learn_site *site;
	int64_t recipients;
	UT_hash_handle hh;
};

struct learn {
	char *file;
	int64_t first_ms, last_ms; /* wall clock: first message, last event; first -1: none yet */
	int64_t messages;
	struct learn_host *hosts;
	struct learn_site *sites;
	struct learn_domain *domains;
	struct buf value, last; /* of the last delivery: id and delays, to count it once */
};

bool learn_scenario(const char *file, struct buf *to, struct buf *errors);
/* Read a log, and write the text of the scenario. */

void learn_write(struct learn *, struct buf *to);

/* learn_host.c */

struct learn_host *learn_host_get(struct learn *, const char *relay);
/* name[address]:port, or unix:PATH; NULL where it is no such thing. */

enum learn_reply { LEARN_SENT, LEARN_DEFERRED, LEARN_FAILED, LEARN_IN_DOUBT };
void learn_host_replied(struct learn_host *, enum learn_reply, int64_t at_ms);
void learn_host_delays(struct learn_host *, const char *delays); /* a/b/c/d in seconds */

int64_t learn_ms(double seconds, int64_t most_ms);
/* Of a delay as a log has it, which may be anything: 0 to most_ms. A scenario takes an hour at most. */

void learn_host_failed(struct learn_host *, const char *why, int64_t at_ms);
/* No connection was made, or it was of no use. */

void learn_host_serves(struct learn_host *, int64_t at_ms);
void learn_host_limited(struct learn_host *, int n, int64_t at_ms);

/* learn_bucket.c */

void learn_site_took(struct learn_site *, int64_t from_ms, int64_t to_ms);
void learn_site_refused(struct learn_site *, const char *reply, int64_t at_ms);

struct learn_bucket {
	double rate;  /* recipients a second */
	int64_t room; /* recipients */
};

bool learn_site_bucket(struct learn_site *, struct learn_bucket *);
/* The rate that it let through while mail waited for it after that refusal. False: nothing says that it has a bucket. The relay goes at
 * a pace somewhat below what a host would take, so the rate is one that it surely has. */

bool learn_is_outage(const struct learn_span *); /* rather than chance */
void learn_hosts_free(struct learn *);

#endif
