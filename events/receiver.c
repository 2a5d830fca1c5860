/* SPDX-License-Identifier: ISC */
#include "base/mem.h"
#include "events/receiver_impl.h"

#include <assert.h>
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
	struct receiver *r = mem_take(rp);
	if (!r)
		return;
	r->kind->close(r);
	assert(r->fd < 0 && !r->curl);
	conf_unref(r->conf);
	free(r);
}
