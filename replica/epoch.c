/* SPDX-License-Identifier: ISC */
#include "replica/epoch.h"

#include "base/fence.h"

#include <string.h>

enum {
	RENEWALS = 5,	      /* a lease */
	RENEW_IDLE_MS = 5000, /* without a lease */
	RENEW_LEAST_MS = 20,
	RENEW_MOST_MS = 6000, /* however long a lease is: who waits is seen to then, too */
};

void sighting_note(struct sighting *s, uint64_t revision, int64_t now_ms)
{
	if (s->revision != revision) {
		const bool newer = s->revision > 0 && revision > s->revision;
		s->gap_ms = newer ? now_ms - s->read_ms : -1;
		s->revision = revision;
		s->since_ms = now_ms;
	}
	s->read_ms = now_ms;
}

static enum epoch_start start_of_own(const struct replica_epoch *row, const struct epoch_own *own)
{
	if (row->state != REPLICA_UP && row->state != REPLICA_DRAINED)
		return EPOCH_PAST;
	/* Who was to adopt a drained one may have given it back, by a later epoch. */
	return own->epoch >= row->epoch || row->state == REPLICA_DRAINED ? EPOCH_TAKE : EPOCH_DOUBT;
}

/* A folder without an epoch has no queue yet. One whose epoch is later than the row's has noted that to take it, or
 * the bucket has lost what followed: only where all was adopted both mean the same. */
static enum epoch_start start_of_other(const struct replica_epoch *row, const struct epoch_own *own)
{
	if (own->epoch > 0 && own->epoch <= row->epoch)
		return EPOCH_PAST;
	if (row->state == REPLICA_ADOPTED)
		return EPOCH_TAKE;
	return own->epoch > 0 ? EPOCH_DOUBT : EPOCH_WAIT;
}

enum epoch_start epoch_start(const struct replica_epoch *row, const struct epoch_own *own)
{
	if (!row)
		return EPOCH_TAKE;
	if (row->state == REPLICA_RETIRED && own->epoch == 0)
		return EPOCH_NEVER;
	enum epoch_start start =
		row->life == own->life ? start_of_own(row, own) : start_of_other(row, own);
	return row->state == REPLICA_RETIRED && start != EPOCH_PAST ? EPOCH_NEVER : start;
}

bool epoch_is_left(const struct replica_epoch *row, const struct epoch_own *own)
{
	return own->bond == EPOCH_LEFT && row &&
	       (row->life != own->life ||
		(row->state != REPLICA_UP && row->state != REPLICA_DRAINED));
}

uint64_t epoch_next(const struct replica_epoch *row, const struct epoch_own *own)
{
	return (row && row->epoch > own->epoch ? row->epoch : own->epoch) + 1;
}

bool epoch_is_behind(const struct epoch_own *own, uint64_t epoch, uint32_t beat)
{
	return epoch > own->epoch || (epoch == own->epoch && beat > own->beat);
}

enum epoch_row epoch_row(const struct replica_epoch *row, uint64_t revision,
			 const struct replica_epoch *ours, uint64_t written)
{
	if (row->epoch == ours->epoch && row->life == ours->life && row->state == REPLICA_UP)
		return EPOCH_HOLDS;
	bool another = row->life != ours->life ||
		       (row->state != REPLICA_UP && row->state != REPLICA_DRAINED);
	if (another && row->epoch > ours->epoch)
		return EPOCH_TAKEN;
	return revision < written ? EPOCH_OLDER : EPOCH_STRANGE;
}

static bool same_holder(const struct replica_epoch *a, const struct replica_epoch *b)
{
	return a->life == b->life && strcmp(a->by, b->by) == 0;
}

bool epoch_is_later(const struct replica_epoch *claim, const struct replica_epoch *row)
{
	if (row->state == REPLICA_RETIRED || claim->epoch != row->epoch)
		return row->state != REPLICA_RETIRED && claim->epoch > row->epoch;
	return !same_holder(claim, row) ||
	       (claim->state == REPLICA_ADOPTED && row->state != REPLICA_ADOPTED);
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
	if (each_ms > RENEW_MOST_MS)
		return RENEW_MOST_MS;
	return each_ms > RENEW_LEAST_MS ? each_ms : RENEW_LEAST_MS;
}

int64_t epoch_fence_ms(int64_t asked_ms, int64_t lease_ms)
{
	return lease_ms > 0 ? asked_ms + lease_ms : FENCE_NEVER;
}
