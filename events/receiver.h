/* receiver.h - the receiver of events: a file, a Unix socket or an HTTP server, as events.to says.
 *
 * Lines go to it in the order in which they came, whole ones only.
 *
 * OWNERSHIP  Owns its descriptor or connection, and a reference on the configuration.
 * THREAD     One at a time. receiver_give() waits, no longer than events.timeout.
 * ERRORS     What is wrong is a clause in why, and what is open is closed.
 * SEE        libcurl-easy(3).
 */
#ifndef EVENTS_RECEIVER_H
#define EVENTS_RECEIVER_H

#include "base/buf.h"
#include "base/conf.h"

#include <stdatomic.h>
#include <stdint.h>

enum receiver_answer {
	RECEIVER_TOOK,
	RECEIVER_AWAY,	  /* later */
	RECEIVER_REFUSES, /* it will never take these: they are gone */
};

enum { RECEIVER_LOOK_MS = 100 }; /* how often what waits looks whether it may go on waiting */

struct receiver;

struct receiver *receiver_new(struct conf *, const _Atomic int64_t *end_ms);
/* NULL: events.to is empty. *end_ms: steady clock, when what waits must end; 0: nobody is in a hurry. */

enum receiver_answer receiver_give(struct receiver *, const char *lines, size_t len, size_t *taken,
				   struct buf *why);
/* taken: so many bytes of them, whole lines, have been taken or refused. With AWAY some may have been. */

int64_t receiver_retry_ms(const struct receiver *);
/* The receiver asked not to be asked again before that; 0: it did not. */

void receiver_free(struct receiver **);

#endif
