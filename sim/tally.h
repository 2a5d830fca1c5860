/* tally.h - what is counted in one run of a simulation, with violations of its rules.
 *
 * OWNERSHIP  tally_new() to tally_free().
 * THREAD     main.
 * ERRORS     Faults: something that may not happen has; they are gathered, not fatal.
 */
#ifndef SIM_TALLY_H
#define SIM_TALLY_H

#include "base/keyed_hash.h"
#include "base/verdict.h"
#include "qmgr/explain.h"
#include "sim/scenario.h"
#include "sim/tally_nodes.h"

/* Why a recipient was deferred, or a connection was of no use: CAUSE(name, code, dsn, text) */
#define CAUSES(CAUSE)                                                                              \
	CAUSE(CONNECT_TIMEOUT, NONE, 0, "4.4.1", "connection timed out")                           \
	CAUSE(REFUSED, NONE, 0, "4.4.1", "connection refused")                                     \
	CAUSE(GREETING_TIMEOUT, NONE, 0, "4.4.2", "no greeting in time")                           \
	CAUSE(TOO_MANY, GREETING, 421, "4.7.0", "too many connections")                            \
	CAUSE(BLOCKED, GREETING, 554, "5.7.1", "your address is blocked")                          \
	CAUSE(SUSPENDED, NONE, 0, "4.3.2", "suspended by the operator")                            \
	CAUSE(REPLY, RCPT, 450, "4.2.0", "try again later")                                        \
	CAUSE(LOST, NONE, 0, "4.4.2", "connection lost")                                           \
	CAUSE(ABANDONED, NONE, 0, "4.4.1", "another destination wants the connection")             \
	CAUSE(NAMES, NONE, 0, "4.4.3", "no hosts found")                                           \
	CAUSE(OTHER, NONE, 0, "4.0.0", "other")

enum cause {
#define CAUSE(name, ...) CAUSE_##name,
	CAUSES(CAUSE)
#undef CAUSE
		CAUSE_COUNT
};

const char *cause_text(enum cause);
enum cause cause_of(const struct verdict *);
struct verdict *cause_verdict(enum cause, enum verdict_class, const char *host);

/* Numbers of which mean and quantiles are wanted. */
struct numbers {
	int64_t n;
	int64_t *value;
};

void numbers_add(struct numbers *, int64_t);
double numbers_mean(const struct numbers *);
int64_t numbers_quantile(struct numbers *, double part); /* sorts */

enum { TALLY_CLASSES = 5 };
extern const char *const tally_by_recipients[TALLY_CLASSES], *const tally_by_bytes[TALLY_CLASSES];

/* One point of the time series. */
struct sample {
	int64_t at_ms;
	int window, busy, connections;
	int64_t waiting;       /* entries */
	enum constraint bound; /* why the first of them waits; CONSTRAINT_IDLE: none does */
	bool shut;	       /* its source is refused there */
	double pace;	       /* deliveries a second; 0: it has none */
};

struct tally_site {
	char *key; /* transport and site */
	int64_t feedbacks;
	double window_sum, window_squares; /* at each feedback */
	int window_least, window_most;
	int64_t samples; /* while there was work */
	double busy_sum;
	int busy_most, connections_most;
	int64_t waiting_most;
	bool forgotten;				 /* as was told */
	struct numbers waits;			 /* ms until sent, of recipients */
	int64_t deferred;			 /* recipients, at least once */
	int64_t deferrals[CAUSE_COUNT];		 /* of them */
	int64_t bound[CONSTRAINT_COUNT], nbound; /* samples at which entries waited */
	int64_t begun;				 /* deliveries */
	int64_t first_begun_us, last_begun_us, gap_least_us, last_ended_us;
	int64_t nsample;
	struct sample *sample;
	struct sample sum; /* of all nodes, at the present one */
	bool own;	   /* its transport is not the first, which has no title of its own */
	double rate;	   /* deliveries a second; 0: any number */
	int64_t window, in_window, slack_window; /* of TALLY_WINDOW_US */
	struct numbers windows; /* deliveries in each in which mail always waited */
	UT_hash_handle hh;
};

/* Of arrivals that have flows. */
struct tally_flow {
	char *name;
	struct numbers waits; /* ms until sent, of recipients */
	UT_hash_handle hh;
};

/* Over time: what it was found to let through, and whether the source is refused there. */
struct tally_provider {
	char *key;
	int64_t nsample;
	struct sample *sample; /* at_ms, pace, shut */
	UT_hash_handle hh;
};

/* Of each recipient whose mail has a flow. */
struct tally_fate {
	int64_t came_ms,
		wait_ms; /* since the start; until sent, -1: it is in the queue at the end */
	const struct tally_flow *flow;
	const struct tally_site *site; /* where its domain went then; or NULL */
};

struct tally {
	int64_t ended_ms;
	int64_t messages, recipients;
	int64_t done; /* messages of which nothing is left */
	int64_t sent, failed, in_doubt, reports;
	int64_t deferred;		/* recipients, at least once */
	int64_t deferrals[CAUSE_COUNT]; /* of recipients */
	int64_t transactions, connections, connected;
	struct numbers sent_at;	      /* ms since the start, of recipients */
	int64_t paced;		      /* recipients that a bucket refused */
	int64_t useless[CAUSE_COUNT]; /* connections that never became ready */
	struct numbers by_recipients[TALLY_CLASSES], by_bytes[TALLY_CLASSES]; /* ms until sent */
	struct numbers
		sure; /* of recipients that never were in doubt; how old they are, if not sent */
	struct numbers first,
		first_own; /* ms until the first delivery of a message begins, by tally_site.own */
	struct tally_nodes nodes;
	int64_t sample_ms; /* between two samples that are kept */
	int64_t nsample;   /* taken so far */
	struct tally_site *sites;
	struct tally_provider *providers; /* by key: of a source, PROVIDER@SOURCE */
	struct tally_domain *domains;
	struct tally_flow *flows;
	int64_t nfate;
	struct tally_fate *fate;
	int64_t active_most, rcpt_most; /* messages and recipients in the scheduler */
	int64_t nfault;
	struct buf faults; /* the first of them, a line each */
};

enum { TALLY_WINDOW_US = 10000000 };

struct tally *tally_new(void);
void tally_free(struct tally **);

struct tally_site *tally_site(struct tally *, const char *key);
void tally_sites_free(struct tally *);

struct tally_flow *tally_flow(struct tally *, const char *name); /* made at first use */
void tally_flows_free(struct tally *);

void tally_fate(struct tally *, const char *flow, const char *domain, int64_t came_ms,
		int64_t wait_ms);

void tally_domain(struct tally *, const char *domain, struct tally_site *);
struct tally_site *tally_site_of(struct tally *, const char *domain);
/* Where its mail goes, as was seen last; NULL: it has not been seen to go anywhere. */

void tally_window(struct tally *, const char *key, int window);
/* A feedback has come, and left the window so wide. */

void tally_begun(struct tally_site *, int64_t now_us); /* a delivery */

void tally_end_windows(struct tally *); /* the run is over */
void tally_add(struct tally *, const char *key, const struct sample *);
/* One node's; tally_added() samples the sums. */

void tally_provider(struct tally *, const char *key, const struct sample *); /* likewise */
void tally_providers_free(struct tally *);

void tally_added(struct tally *, int64_t at_ms);
void tally_thin(struct tally *);
/* Every second sample goes, and from now on every second only is kept. */

void tally_wait(struct tally *, uint32_t nrcpt, uint64_t size, int64_t ms);
void tally_fault(struct tally *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

double tally_deferred_percent(const struct tally *);
const struct tally_site *tally_largest(const struct tally *); /* with most feedback; or NULL */
double tally_window_mean(const struct tally_site *);
double tally_window_deviation(const struct tally_site *);
double tally_busy_mean(const struct tally_site *);
double tally_bound_part(const struct tally_site *, enum constraint);
/* Of the samples at which entries waited. */
double tally_rate(const struct tally_site *); /* deliveries begun in a second, first to last */

#endif
