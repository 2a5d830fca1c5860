/* history.h - what happens to some machines, by a seed: acts one after the other, and rest at the end.
 *
 *	seed --> kind (how many machines, which faults are about) + acts --> play --> the sentence that is broken
 *	                                                  ^
 *	                                                  +-- the shortener leaves out what it does not take
 *
 * At the end what was broken is whole again: servers answer, machines that are not gone for good are on, there is room.
 * Then all mail must leave, each node must take mail, no claim is left, and each ends within its grace.
 *
 * OWNERSHIP  A history is plain data.
 * THREAD     One.
 */
#ifndef TESTS_UNIT_HISTORIES_HISTORY_H
#define TESTS_UNIT_HISTORIES_HISTORY_H

#include "tests/unit/histories/ledger.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { HISTORY_ACTS = 160 };

struct act {
	int what;
	uint64_t salt;
};

struct story {
	uint64_t seed;
	uint32_t faults; /* bits: which are about */
	int machines;
	bool async;	 /* clients do not wait for the copy */
	bool stays_full; /* what is full is full at rest, too */
	bool strict;	 /* NATS hears all, and has time to: what is refused is sent by nobody */
	int n;
	struct act act[HISTORY_ACTS];
};

void history_make(struct story *, uint64_t seed, uint32_t allowed);
/* allowed: faults that may be about; ~0: all. */

void history_add(struct story *, const char *act); /* one more, by its name */
void history_add_at(struct story *, const char *act, int of, uint64_t salt);
/* Of that machine. salt: what else there is to chance. Killed, it stays off; doomed, it dies after "adopting" where machines is 3. */

void history_play(const struct story *); /* ledger.broken is what came of it */

void history_print(const struct story *, FILE *);
uint32_t history_fault(const char *name); /* its bit; 0: there is none */
const char *history_fault_name(int bit);  /* NULL: there are no more */

extern bool history_loud; /* say what happens, on standard error */

#endif
