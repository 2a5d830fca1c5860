/* spread.h - values with weights: "1:9", "2..100:1" is one mostly, else two to a hundred.
 *
 * A word may have one # in it, for a number to be put there; "h1..300.example.org" is three hundred words, of which each has
 * its part of the weight.
 *
 * OWNERSHIP  Embedded; spread_fini() frees.
 * THREAD     One.
 * ERRORS     spread_add() returns false for what is none.
 */
#ifndef SIM_SPREAD_H
#define SIM_SPREAD_H

#include "base/conf_rows.h"
#include "sim/dice.h"

struct spread_item {
	int64_t low, high;
	char *word;  /* of a spread of words */
	double upto; /* its weight and that of all before it */
};

struct spread {
	int n;
	struct spread_item *item;
};

struct spread_range {
	int64_t low, high;
	int before; /* characters */
	const char *after;
};

bool spread_range(const char *word, struct spread_range *);
/* Is it such a range of words? The word stays. */

char *spread_range_word(const char *word, const struct spread_range *, int64_t number);

bool spread_add(struct spread *, enum conf_type, const char *text);
/* type: CONF_number or CONF_size; CONF_text for words. */

int64_t spread_number(const struct spread *, struct dice *);
const char *spread_word(const struct spread *, struct dice *);
void spread_fini(struct spread *);

#endif
