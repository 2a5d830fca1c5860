/* SPDX-License-Identifier: ISC */
#include "replica/trouble.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

bool trouble_failed(struct trouble *t, const char *why)
{
	if (!*why)
		return false;
	bool same = t->why && strcmp(t->why, why) == 0;
	bool soon = t->why && t->up_ms > 0 && !t->again;
	t->again |= soon;
	t->up_ms = 0;
	if (same && !soon)
		return false;
	free(t->why);
	t->why = mem_strdup(why);
	return true;
}

bool trouble_up(struct trouble *t, int64_t now_ms)
{
	assert(now_ms > 0);
	t->up_ms = now_ms;
	return !t->again;
}

bool trouble_over(struct trouble *t, int64_t now_ms)
{
	if (!t->why || t->up_ms == 0 || now_ms - t->up_ms < TROUBLE_STEADY_MS)
		return false;
	bool untold = t->again;
	trouble_fini(t);
	return untold;
}

void trouble_fini(struct trouble *t)
{
	free(t->why);
	*t = (struct trouble){.why = NULL};
}
