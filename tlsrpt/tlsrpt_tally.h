/* tlsrpt_tally.h - results counted by domain, UTC day and policy.
 *
 *	tally --> report (day, domain) --> policy (type, text) --> detail (type, host, addresses, reason)
 *
 * Each level is bounded. Of days with more domains than fit, those that come later are not counted; of a domain
 * with more policies, or a policy with more kinds of failures, what is beyond counts with the last.
 *
 * OWNERSHIP  The tally owns all of it.
 * THREAD     tlsrpt, or whoever has it while that does not run. Pure.
 * ERRORS     None.
 */
#ifndef TLSRPT_TLSRPT_TALLY_H
#define TLSRPT_TLSRPT_TALLY_H

#include "base/keyed_hash.h"
#include "base/tls_result.h"

enum {
	TLSRPT_REPORTS_MAX = 20000,
	TLSRPT_POLICIES_MAX = 8,
	TLSRPT_DETAILS_MAX = 40,
	TLSRPT_RECIPIENTS_MAX = 8, /* of one report */
	TLSRPT_SENT_MAX = 64,	   /* of them, in the records of all attempts */
	DAY_S = 86400,
};

struct tlsrpt_detail {
	enum tls_result_type type;
	int64_t count;
	char *mx, *address, *own, *reason; /* "" where not known */
};

struct tlsrpt_policy {
	enum tls_result_policy policy;
	char *text;
	int64_t successes, failures;
	int ndetail;
	struct tlsrpt_detail *detail;
};

/* The state of a report that is being made or sent. */
enum tlsrpt_step {
	TLSRPT_COUNTING, /* its day has not ended, or it is not due yet */
	TLSRPT_RECORD,	 /* dns is asked who wants it */
	TLSRPT_SENDING,	 /* it is on its way to some of them */
};

struct tlsrpt_report {
	UT_hash_handle hh;
	char *key; /* "20779 a.test": day, domain */
	int64_t day;
	const char *domain; /* in key */
	int npolicy;
	struct tlsrpt_policy *policy;
	/* of tlsrpt_send.c: */
	struct tlsrpt *tlsrpt;
	enum tlsrpt_step step;
	int nsent;
	char **sent;   /* recipients that have it: the record may be another at the next attempt */
	int64_t due_s; /* the system's clock: when it is tried next; 0: not settled yet */
	int64_t wait_s;
	int ntarget, open; /* recipients; attempts under way */
	struct tlsrpt_target *target;
};

struct tlsrpt_tally {
	struct tlsrpt_report *reports;
};

void tlsrpt_tally_fini(struct tlsrpt_tally *);

void tlsrpt_tally_add(struct tlsrpt_tally *, int64_t day, const struct tls_result *);

struct tlsrpt_report *tlsrpt_tally_get(struct tlsrpt_tally *, int64_t day, const char *domain);
/* Made where there is none. NULL: there are too many. */

bool tlsrpt_report_went_to(const struct tlsrpt_report *,
			   const char *to); /* has this recipient got it? */
void tlsrpt_report_add_sent(struct tlsrpt_report *, const char *to);
/* This one has it. Of too many the first is forgotten. */

struct tlsrpt_policy *tlsrpt_report_policy(struct tlsrpt_report *, enum tls_result_policy,
					   const char *text);
struct tlsrpt_detail *tlsrpt_policy_detail(struct tlsrpt_policy *, const struct tlsrpt_detail *);
/* The one that is like this, made where there is none; or the one that stands for it. */

void tlsrpt_tally_drop(struct tlsrpt_tally *,
		       struct tlsrpt_report *); /* at rest, without targets */

#endif
