/* SPDX-License-Identifier: ISC */
#include "smtpd/greeting.h"

#include "smtpd/filtering.h"

#include <assert.h>

static void say_greeting(struct session *s, bool passed)
{
	if (!passed)
		session_end(s, RESPONSE_FILTER_CLOSES);
	else if (s->worker->closing)
		session_close(s, RESPONSE_CLOSING);
	else if (s->filtering && buf_len(stream_in(s->stream)) > 0)
		session_close(s, RESPONSE_OUT_OF_STEP); /* it spoke while the filters were asked */
	else
		session_reply(s, RESPONSE_GREETING, s->service->hostname);
}

void greeting_begin(struct session *s)
{
	assert(!s->tx && !s->wait.kind);
	filtering_connect(s, say_greeting);
}
