/* SPDX-License-Identifier: ISC */
#include "smtpd/alias_wait.h"

#include "smtpd/reception.h"

#include <assert.h>

static void aliases_are_learnt(void *owner, bool failed)
{
	struct session *s = owner;
	s->tx->aliases_failed = failed;
	wait_answered(s->worker, s->wait.cookie, s);
}

enum alias_learnt alias_wait(struct session *s, bool (*known)(void *session),
			     const struct wait_kind *kind)
{
	const struct alias_learner by = {.maps = s->worker->socketmaps,
					 .conf = s->worker->conf,
					 .session = s->number,
					 .known = known,
					 .learnt = aliases_are_learnt,
					 .owner = s};
	assert(s->tx);
	enum alias_learnt so_far = alias_learn(&s->tx->aliases, &by);
	if (so_far == ALIAS_WAITS)
		wait_begin(s, kind, 0);
	return so_far;
}

void alias_wait_ended(struct session *s)
{
	if (s->tx)
		alias_learn_end(&s->tx->aliases);
}
