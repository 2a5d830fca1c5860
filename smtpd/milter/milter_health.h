/* milter_health.h - how each filter is, as all threads have seen it.
 *
 *	a message has passed, an answer has come --> [ one row a filter ] --> sluice milter
 *	it failed, it was tried                            |
 *	                                                   +--> log: milter; metric milter_up; condition filter_away
 *
 * A filter that could not be reached works again as soon as it negotiates. One that failed a message works again when
 * a message has passed; or it negotiates, and no message has failed for MILTER_DOUBT_MS, since there may be none.
 *
 * OWNERSHIP  A row is made when its filter is first heard of, and stays. A look is its owner's:
 *            milter_health_fini().
 * THREAD     Any; a lock is held for as long as a row is changed or copied.
 * ERRORS     None.
 */
#ifndef SMTPD_MILTER_MILTER_HEALTH_H
#define SMTPD_MILTER_MILTER_HEALTH_H

#include "base/condition.h"
#include "base/conf.h"
#include "smtpd/milter/milter_table.h"

#include <stdbool.h>
#include <stdint.h>

enum { MILTER_DOUBT_MS = 60000 };

enum milter_fault {
	MILTER_UNREACHED,    /* no connection, or no negotiation */
	MILTER_MESSAGE_FAULT /* it was at work */
};

struct milter_health {
	bool away;
	int64_t since_ms; /* wall clock: away since then, or back; 0: it has been there from the start */
	int64_t seen_ms;			/* steady clock: a sign of life; 0: none yet */
	int64_t answers, answer_us, longest_us; /* how many; all together; the longest */
	char *why;				/* of the last failure, or NULL */
};

void milter_health_broke(const struct conf_milter *, enum milter_fault, const char *why);
void milter_health_passed(const struct conf_milter *); /* a message has its last answer */
void milter_health_negotiated(const struct conf_milter *, int64_t asked_ms);
/* When it was tried. asked_ms: steady clock, when that began; what has failed since then is newer, and holds. */

bool milter_health_seen_since(const char *name, int64_t steady_ms);
/* Whichever thread has had the sign of life. */

void milter_health_answered(const char *name, enum milter_answer_kind, const char *reply,
			    int64_t took_us);
/* reply: of MILTER_ANSWER_REPLY, whose digits say what it is. */

enum condition milter_health_condition(const struct conf_milter *);
/* The answer to mail while the filter is away. */

void milter_health_take(const char *name, struct milter_health *);
void milter_health_fini(struct milter_health *);

void milter_health_begin(const struct conf_milter *);
/* The filter is in the configuration from now on: it works, until it is found not to. */

void milter_health_forget(const char *name);
/* The filter is there no more, and is not heard of until it begins again. */

#endif
