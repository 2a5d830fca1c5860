/* SPDX-License-Identifier: ISC */
#include "replica/epoch.h"

#include "base/fence.h"

enum {
	RENEWALS = 5,	      /* a lease */
	RENEW_IDLE_MS = 5000, /* without a lease */
	RENEW_LEAST_MS = 20,
};

void sighting_note(struct sighting *s, uint64_t revision, int64_t now_ms)
{
	if (s->revision == revision)
		return;
	s->revision = revision;
	s->since_ms = now_ms;
}

static enum epoch_start start_of_own(const struct replica_epoch *row)
{
	return row->state == REPLICA_UP || row->state == REPLICA_DRAINED ? EPOCH_TAKE : EPOCH_PAST;
}

enum epoch_start epoch_start(const struct replica_epoch *row, const struct epoch_own *own)
{
	if (!row)
		return EPOCH_TAKE;
	if (row->state == REPLICA_RETIRED)
		return EPOCH_NEVER;
	if (row->life == own->life)
		return start_of_own(row);
	if (own->epoch > 0)
		return EPOCH_PAST;
	return row->state == REPLICA_ADOPTED ? EPOCH_TAKE : EPOCH_WAIT;
}

enum epoch_adopt epoch_adopt(const struct replica_epoch *row, const struct sighting *seen,
			     bool ordered, int64_t now_ms)
{
	if (row->state == REPLICA_DRAINED)
		return EPOCH_MAY;
	if (row->state != REPLICA_UP)
		return EPOCH_NOT;
	if (row->lease_ms == 0)
		return ordered ? EPOCH_MAY : EPOCH_NOT;
	int64_t silent_ms = now_ms - seen->since_ms;
	int64_t needed_ms = row->lease_ms + (ordered ? row->lease_ms / RENEWALS : row->lease_ms);
	return seen->revision > 0 && silent_ms >= needed_ms ? EPOCH_MAY : EPOCH_NOT_YET;
}

int64_t epoch_lease_ms(int64_t adopt_after_ms)
{
	return adopt_after_ms / 2;
}

int64_t epoch_renew_ms(int64_t lease_ms)
{
	int64_t each_ms = lease_ms > 0 ? lease_ms / RENEWALS : RENEW_IDLE_MS;
	return each_ms > RENEW_LEAST_MS ? each_ms : RENEW_LEAST_MS;
}

int64_t epoch_fence_ms(int64_t asked_ms, int64_t lease_ms)
{
	return lease_ms > 0 ? asked_ms + lease_ms : FENCE_NEVER;
}
