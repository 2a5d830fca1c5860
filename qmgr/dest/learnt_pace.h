/* learnt_pace.h - how many deliveries in a time a receiver lets through, learnt from what it says.
 *
 *	        refused by the host                       nothing taken since
 *	FREE ------------------------> PACED ------------------------------------> ASKING
 *	 |                             ^   |                                        |  ^ |
 *	 |  refused, and nothing was   |   +-- refused: down                        |  +-+ refused: after twice
 *	 |  taken lately               |                                            |      the time
 *	 +-----------------------------)-------------------------------------> ASKING
 *	                               +------------- taken ------------------------+
 *
 *	free	nothing is held back; what is taken is counted, for the day that it will be refused
 *	paced	so many a second, evenly spaced: at first what was taken in the last seconds. Each that is taken lets it grow:
 *		quickly up to what was found to go, by a little beyond, and more the longer nothing is refused; faster while all that is
 *		known is what a burst had, and half as fast after each refusal. With one message it grows by a small part at most, so that a
 *		receiver that takes one in some seconds does not refuse every third; by more after hours, since of one in minutes few come. Where nothing is known, as after an outage, it doubles
 *		with each until one is refused. Refused: down to the mean of what was measured and what it was
 *	asking	one delivery at a time, after about 1 s, 2 s, 4 s, ..., by chance an eighth sooner or later, lest one that is out at even
 *		intervals be asked in each of them; after a pace that was refused twice in vain, from twice its spacing on
 *
 * What was under way when the pace was changed last says nothing new by being refused: it belongs to an older era. The first of an era
 * waits until all that is under way has come home, but for what hosts owe an answer to for long.
 *
 * What was found to go is the mean of a whole cycle, from one silence to the end of the next: so a receiver that counts by the
 * minute or the hour is asked rarely, and gets its mail evenly, after its second cycle.
 *
 * A bucket lets the mean of a cycle through however slowly it is drained. So it is doubted that refusals have to do with the pace when they
 * come as a silence below what was found to go, or with hardly any taken, or when each of several cycles had less than the one
 * before: as of a host that is out now and then. Then nothing is known after a silence, and a pace of which some were taken
 * grows quickly; until a lesser pace helps at once.
 *
 * Numbers in, numbers out. The same serves whatever a pace belongs to: a site today.
 *
 * OWNERSHIP  Embedded.
 * THREAD     qmgr.
 * STATES     As drawn; learnt_pace_move() in the .c file is the one mover.
 * ERRORS     None; misuse asserts.
 */
#ifndef QMGR_DEST_LEARNT_PACE_H
#define QMGR_DEST_LEARNT_PACE_H

#include <stdbool.h>
#include <stdint.h>

enum {
	LEARNT_PACE_ASK_MS = 1000,     /* where all is refused it is asked after so long at first */
	LEARNT_PACE_COUNTED_MS = 5000, /* the last seconds */
	LEARNT_PACE_LEAST_MS =
		2000, /* what came in less is believed to have come in so long: a burst says little */
	LEARNT_PACE_SLICES = 10,
	LEARNT_PACE_AHEAD = 24,
	LEARNT_PACE_AHEAD_PART = 8,	    /* of what was taken lately beside */
	LEARNT_PACE_KEPT_MS = 24 * 3600000, /* forgotten after so long without a refusal */
	LEARNT_PACE_NARROW_MS = 600000,	    /* pipelines are one deep for so long after a refusal */
};

#define LEARNT_PACE_FLOOR 0.1	/* a second: below that nothing goes back to the head */
#define LEARNT_PACE_LEAST 0.002 /* a second: below that it is asked */
#define LEARNT_PACE_MOST 1e5	/* a second: no host takes more, and it grows no further */

enum learnt_pace_state { LEARNT_PACE_FREE, LEARNT_PACE_PACED, LEARNT_PACE_ASKING };

struct learnt_pace {
	enum learnt_pace_state state;
	unsigned era;			/* changes with the pace's cuts */
	bool waits;			/* for what was under way at that time */
	bool first;			/* none has begun since */
	double rate;			/* paced: deliveries a second */
	double known;			/* a second: what was found to go; 0: nothing */
	int64_t due_us;			/* the next may begin */
	int64_t ask_ms;			/* asking: how long it waited, or waits */
	int64_t refused_ms;		/* last; 0: never */
	int64_t era_ms, cycle_ms;	/* since when; */
	int64_t era_taken, cycle_taken; /* and what was taken since */
	double guess;			/* how little is known, 1 to 0 */
	bool in_vain;			/* the last of this pace was refused, and none was taken */
	double mean;			/* a second: of the last cycle */
	int falls;	  /* cycles that had less than the one before, one after the other */
	bool early;	  /* refused last below what was found to go, or with hardly any taken */
	bool doubted;	  /* that it refuses for the pace's sake */
	int64_t slice_ms; /* of the newest slice of the last seconds, */
	int slice[LEARNT_PACE_SLICES]; /* what was taken in each, the newest first */
};

/* All times: one steady clock. */

void learnt_pace_begun(struct learnt_pace *, int64_t now_ms); /* a delivery begins */

bool learnt_pace_taken(struct learnt_pace *, unsigned era, int64_t now_ms);
/* One that began in that era was taken. True: the state is another. */

bool learnt_pace_refused(struct learnt_pace *, unsigned era, int64_t now_ms, int64_t most_ms);
/* A message was refused, by the host. most_ms: the host is asked at least as often. True: the pace was cut. */

void learnt_pace_home(struct learnt_pace *); /* nothing is under way */

int64_t learnt_pace_ahead(const struct learnt_pace *);
/* Pipelines are filled up to so many deliveries under way in all: they grow with what was taken lately, so that a receiver that lets little
 * through has not refused hundreds before it has said so. */

bool learnt_pace_open(const struct learnt_pace *, int64_t now_ms, int64_t under_way);
/* Another delivery may begin. */

int64_t learnt_pace_due_ms(const struct learnt_pace *);
/* When it may at the earliest, as far as that is a matter of time; 0: at once. */

double learnt_pace_rate(const struct learnt_pace *); /* a second, where it is asked too; 0: free */

bool learnt_pace_narrow(const struct learnt_pace *, int64_t now_ms);
/* Nothing goes behind another on a connection. */

bool learnt_pace_stale(const struct learnt_pace *, int64_t now_ms); /* to be forgotten */
void learnt_pace_forget(struct learnt_pace *);

void learnt_pace_recall(struct learnt_pace *, double rate, int64_t now_ms, int64_t most_ms);
/* So it was before a restart, or so another node has it. */

#endif
