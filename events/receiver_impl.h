/* receiver_impl.h - what the three kinds of receivers share, and what each does.
 *
 * THREAD     See receiver.h.
 */
#ifndef EVENTS_RECEIVER_IMPL_H
#define EVENTS_RECEIVER_IMPL_H

#include "events/receiver.h"

struct receiver_kind {
	enum receiver_answer (*give)(struct receiver *, const char *lines, size_t len,
				     size_t *taken, struct buf *why);
	void (*close)(struct receiver *); /* what is open, if anything is */
};

struct receiver {
	const struct receiver_kind *kind;
	struct conf *conf;
	const char *where; /* in conf: path or URL */
	const _Atomic int64_t *end_ms;
	int64_t retry_ms;
	int fd; /* or -1 */
	void *curl;
};

extern const struct receiver_kind receiver_file, receiver_socket, receiver_http;

/* The bounds of each receiver: receiver_bounds.c, which calls none of these. */
bool receiver_in_time(struct receiver *, int64_t began_ms);
/* May what began then go on? */

size_t receiver_whole(const char *lines, size_t len);
/* How many of the bytes are whole lines. */

void receiver_close_fd(struct receiver *);

#endif
