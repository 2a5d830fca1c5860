/* shape.h - how many recipients wait, by domain and age.
 *
 *	shape_begin()  shape_add() for each message ...  shape_end()      what the queue's index has
 *	shape_add_name()                                                  what lies elsewhere
 *	shape_rank() -> rows, the longest first
 *
 * The first two may be gone through several times, for a part of the messages each.
 *
 * OWNERSHIP  shape_free() frees the rows.
 * THREAD     One.
 * ERRORS     None.
 * SEE        POSTFIX QSHAPE_README.
 */
#ifndef SPOOL_SHAPE_H
#define SPOOL_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SHAPE_BUCKETS_MAX = 64 };

struct shape_row {
	char *name;	/* of a domain, or ".parent"; "" is the null sender's */
	int64_t total;	/* recipients, or messages of senders */
	int64_t *count; /* of each bucket */
	int subdomains; /* of a parent: how many lie directly below it */
};

struct shape {
	/* what is asked for: */
	bool senders;	  /* count messages by their sender's domain */
	bool parents;	  /* domains above those, too */
	bool linear;	  /* buckets of the same width; else each twice as wide as the one before */
	int buckets;	  /* 1 to SHAPE_BUCKETS_MAX; the last takes all that is older */
	int64_t first_ms; /* width of the first; at least 1 */
	uint32_t queues;  /* bit 1 << enum spool_queue: those that are counted */
	char **from;	  /* patterns: senders whose mail is counted (base/address_pattern.h) */
	int nfrom;	  /* 0: all */
	char **flow;	  /* names of flows whose mail is counted */
	int nflow;	  /* 0: all */
	/* the answer: */
	struct shape_row all;
	struct shape_row *row; /* sorted: the largest total, then the shorter name, first */
	size_t n;
	/* while it is being made: */
	int64_t *cell; /* by domain's number and bucket */
	uint32_t ncell;
	struct shape_name *names; /* what was counted of each domain */
};

struct shape *shape_new(void); /* asks for what qshape does by default: 10 buckets from 5 minutes */
void shape_free(struct shape **);

struct domains;
void shape_begin(struct shape *, const struct domains *);
void shape_add(struct shape *, uint32_t domain, int64_t age_ms, int64_t n);
void shape_end(struct shape *, const struct domains *);
void shape_add_name(struct shape *, const char *domain, int64_t age_ms, int64_t n);
void shape_rank(struct shape *);

void shape_want_sender(struct shape *, const char *pattern);
bool shape_wants_sender(const struct shape *, const char *address);

void shape_want_flow(struct shape *, const char *flow);
bool shape_wants_flow(const struct shape *, const char *flow);

enum shape_guess { SHAPE_NO, SHAPE_YES, SHAPE_ASK };
enum shape_guess shape_guess_sender(const struct shape *, const char *domain);
/* The group by the domain alone; "" is the null sender's. */

int shape_bucket(const struct shape *, int64_t age_ms);

#endif
