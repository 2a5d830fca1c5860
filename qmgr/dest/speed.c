/* SPDX-License-Identifier: ISC */
#include "qmgr/dest/speed.h"

#include <assert.h>
#include <limits.h>

enum {
	SMOOTHING = 8,		/* a new sample counts for one in so many */
	TURN_US = 2000,		/* from a reply to the next command, through our own threads */
	IDLE_PART = 20,		/* idling for one part in so many is nothing to avoid */
	WAIT_US = 150000,	/* who comes next may wait so long for what is in a pipeline */
	GAPS = 2,		/* so many may follow each other unserved before the host idles */
	SETUP_TRIPS = 4,	/* where it was never measured: TCP, greeting, EHLO, and some */
	MESSAGES_MANY = INT_MAX /* as many as the pipeline takes */
};

void speed_round_trip(struct speed *sp, int64_t us)
{
	if (us > 0 && (sp->r_us == 0 || us < sp->r_us))
		sp->r_us = us;
}

static void smooth_value(int64_t *value, int64_t us)
{
	assert(us >= 0);
	*value = *value == 0 ? us : *value + (us - *value) / SMOOTHING;
	if (*value < 1)
		*value = 1;
}

void speed_set_up(struct speed *sp, int64_t us)
{
	if (us > 0)
		smooth_value(&sp->setup_us, us);
}

void speed_served(struct speed *sp, const struct speed_sample *x)
{
	bool waited = x->before_us > x->began_us;
	int64_t from_us = waited ? x->before_us : x->began_us;
	int64_t us = x->ended_us - from_us - sp->r_us * (waited ? x->behind : x->trips);
	smooth_value(&sp->s_us, us > 0 ? us : 0);
}

/* A delivery under way for longer than usual shows a host that has become slower, or is new to us. */
static int64_t service_us(const struct speed *sp, int64_t waited_us)
{
	int64_t left_us = waited_us - 2 * sp->r_us - TURN_US;
	return left_us > sp->s_us ? left_us : sp->s_us;
}

static int deserved_depth(const struct speed *sp, int64_t s_us)
{
	assert(s_us > 0);
	int64_t n = 1 + sp->r_us / s_us;
	return n < MESSAGES_MANY ? (int)n : MESSAGES_MANY;
}

int speed_free_depth(const struct speed *sp, int64_t waited_us)
{
	int64_t s_us = service_us(sp, waited_us);
	return s_us == 0 ? MESSAGES_MANY : deserved_depth(sp, s_us);
}

int speed_deep_depth(const struct speed *sp, int64_t waited_us)
{
	int64_t s_us = service_us(sp, waited_us);
	int64_t gap_us = sp->r_us + TURN_US;
	if (s_us == 0)
		return MESSAGES_MANY;
	if (s_us > IDLE_PART * gap_us)
		return deserved_depth(sp, s_us);
	int64_t n = 1 + GAPS * ((gap_us + s_us - 1) / s_us), n_of_wait = 1 + WAIT_US / s_us;
	n = n > n_of_wait ? n : n_of_wait;
	return n < MESSAGES_MANY ? (int)n : MESSAGES_MANY;
}

int64_t speed_share_us(const struct speed *sp, int trips, int depth)
{
	int64_t us = (sp->s_us + trips * sp->r_us) / (depth > 0 ? depth : 1);
	return us > sp->s_us ? us : sp->s_us;
}

bool speed_worth_connecting(const struct speed *sp, int ahead, int64_t waited_us)
{
	assert(ahead >= 0);
	int64_t setup_us = sp->setup_us ? sp->setup_us : SETUP_TRIPS * sp->r_us;
	return setup_us + TURN_US < ahead * service_us(sp, waited_us);
}
