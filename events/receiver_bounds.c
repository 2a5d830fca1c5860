/* SPDX-License-Identifier: ISC */
#include "base/clock.h"
#include "events/receiver_impl.h"

#include <string.h>
#include <unistd.h>

bool receiver_in_time(struct receiver *r, int64_t began_ms)
{
	int64_t now_ms = clock_steady_ms(), end_ms = atomic_load(r->end_ms);
	return now_ms - began_ms < r->conf->events.timeout && (!end_ms || now_ms < end_ms);
}

size_t receiver_whole(const char *lines, size_t len)
{
	const char *last = len > 0 ? memrchr(lines, '\n', len) : NULL;
	return last ? (size_t)(last - lines) + 1 : 0;
}

void receiver_close_fd(struct receiver *r)
{
	if (r->fd >= 0)
		close(r->fd);
	r->fd = -1;
}
