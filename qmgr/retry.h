/* retry.h - when a message is tried again, and when it is given up.
 *
 * The next attempt comes after the message's age in the queue, within minimal and
 * maximal_backoff_time, a little earlier or later by chance, so that what came together does not
 * come back together. Where nothing but the look-up of names failed it may come after RETRY_NAMES_MS already: no host
 * is spared by waiting, and the name server may be there again in a moment.
 *
 * The age of mail that was to be sent later counts from then on (envelope_began_ms()).
 *
 * Numbers in, numbers out.
 *
 * THREAD     qmgr.
 * SEE        POSTFIX QSHAPE_README, "deferred queue", last paragraph.
 */
#ifndef QMGR_RETRY_H
#define QMGR_RETRY_H

#include "base/conf.h"
#include "base/envelope.h"

#include <stdbool.h>
#include <stdint.h>

enum { RETRY_NAMES_MS = 5000 };

struct retry_terms {
	const struct conf_queue *queue;
	int64_t lifetime; /* of its flow; 0: none of its own */
};

struct retry_terms retry_terms_of(const struct conf *, const struct envelope *);
/* The schedule of this message. Copies for an archive have no other end than the queue's. */

int64_t retry_due_ms(const struct retry_terms *, const struct envelope *, int64_t now_ms,
		     double chance);
/* Wall clock. chance: 0 <= chance < 1. Never later than what is due to the sender: the warning of a
 * delay, or the end of the message's lifetime. */

bool retry_lacks_names(const struct envelope *);
/* Nobody but the DNS, for now, keeps what is left of it from its hosts. */

int64_t retry_grace_ms(const struct retry_terms *, const struct envelope *, int64_t began_ms);
/* So long after a start at that time it waits for somebody who can be reached, though its time in the queue was over by then: as long as
 * that is, and an hour at most. 0: it was not over. */

bool retry_expired(const struct retry_terms *, const struct envelope *, int64_t now_ms);
bool retry_warning_due(const struct retry_terms *, const struct envelope *, int64_t now_ms);

enum retry_end { RETRY_GOES_ON, RETRY_LIFETIME, RETRY_BY };

enum retry_end retry_ended(const struct retry_terms *, const struct envelope *, int64_t now_ms);
/* Past an end after which nothing is tried any more, and which? At that of the queue it is once more. */

int64_t retry_end_ms(const struct retry_terms *, const struct envelope *);
/* Wall clock: the first such end; INT64_MAX: there is none. */

int64_t retry_last_ms(const struct retry_terms *, const struct envelope *);
/* Wall clock: after this nothing is tried any more, for that end or the queue's. */

int64_t retry_wait_ms(const struct retry_terms *, const struct envelope *, int64_t taken_ms,
		      bool scarce);
/* Wall clock: a message that was taken up at taken_ms waits for its turn no longer, since it has ended then, or its sender
 * is to be told; INT64_MAX: for ever. What is taken up late has some time for one more attempt, though little where places are
 * scarce: others wait in the queue for that which it has, and their time comes, too. A lifetime of 0 is
 * over after the first, whenever that is. */

int64_t retry_tell_ms(const struct envelope *);
/* Wall clock: then its sender is to be told that it is late, for so it was asked; INT64_MAX: not. */

#endif
