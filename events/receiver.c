/* SPDX-License-Identifier: ISC */
#include "base/clock.h"
#include "base/mem.h"
#include "events/receiver_impl.h"

#include <stdlib.h>
#include <string.h>

static const char unix_prefix[] = "unix:";

struct receiver *receiver_new(struct conf *conf, const _Atomic int64_t *end_ms)
{
	const char *to = conf->events.to;
	if (!*to)
		return NULL;
	struct receiver *r = mem_zalloc(sizeof *r);
	bool is_socket = strncmp(to, unix_prefix, strlen(unix_prefix)) == 0;
	r->kind = *to == '/' ? &receiver_file : is_socket ? &receiver_socket : &receiver_http;
	r->conf = conf_ref(conf);
	r->where = is_socket ? to + strlen(unix_prefix) : to;
	r->end_ms = end_ms;
	r->fd = -1;
	return r;
}

enum receiver_answer receiver_give(struct receiver *r, const char *lines, size_t len, size_t *taken,
				   struct buf *why)
{
	*taken = 0;
	r->retry_ms = 0;
	enum receiver_answer answer = r->kind->give(r, lines, len, taken, why);
	if (answer == RECEIVER_AWAY)
		r->kind->close(r);
	return answer;
}

int64_t receiver_retry_ms(const struct receiver *r)
{
	return r->retry_ms;
}

void receiver_free(struct receiver **rp)
{
	struct receiver *r = *rp;
	if (!r)
		return;
	r->kind->close(r);
	conf_unref(r->conf);
	free(r);
	*rp = NULL;
}

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
