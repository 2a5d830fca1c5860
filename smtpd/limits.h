/* limits.h - how much each login, client and sender has sent, and what is still allowed.
 *
 * One table for each of the three, by name. A row of a client or a sender is dropped when it stands for
 * nothing any more, that of a login when there are too many: then the one that was seen least lately,
 * unless the operator has suspended it.
 *
 * What became of a login's mail today and yesterday is kept over restarts, of the LIMITS_KEPT_MAX that were seen
 * last. As text it is a line for each: when it was seen, its figures (base/figures.h), and its name.
 *
 * Numbers in, numbers out: no clock, no I/O.
 *
 * OWNERSHIP  The table owns its rows; a pointer to one is good until the next call.
 * THREAD     The limiter's.
 * ERRORS     None; a line that makes no sense is left out.
 * SEE        base/gcra.h.
 */
#ifndef SMTPD_LIMITS_H
#define SMTPD_LIMITS_H

#include "base/figures.h"
#include "base/gcra.h"
#include "base/keyed_hash.h"
#include "base/limit_value.h"
#include "base/list.h"

#include <stdbool.h>

enum limit_of { LIMIT_MESSAGES, LIMIT_RECIPIENTS, LIMIT_OF_COUNT };

enum { LIMITS_ROWS_MAX = 200000 }; /* of each table */

enum { LIMITS_KEPT_MAX = 20000 };

enum { LIMITS_LOOK_US = 1000000 }; /* who is refused has the others asked so often */

/* Of a login: what its figures count. */
enum login_figure {
	LOGIN_MESSAGES, /* accepted */
	LOGIN_RECIPIENTS,
	LOGIN_REFUSED,	/* messages and recipients, by a limit or while it was suspended */
	LOGIN_FAILURES, /* wrong passwords */
};

struct limits_row {
	UT_hash_handle hh;
	struct list link;		   /* by when it was seen last; none while suspended */
	struct gcra spent[LIMIT_OF_COUNT]; /* steady clock */
	struct figures figures;		   /* by enum login_figure; of others the refused alone */
	int64_t seen_ms;		   /* wall clock; 0: never */
	bool suspended;
	uint64_t told[LIMIT_OF_COUNT]; /* to the other nodes, in a cluster */
	struct limit_value said;       /* of a login: by a server, where one has tables of limits */
	bool was_said, has_limits;     /* it has been asked; and has a row, which is said */
	int64_t looked_us;	       /* steady clock: when they were asked last */
	char name[];
};

/* Other nodes count too: they are told what has passed under a limit, and say what all have had. */
struct limits_sharing {
	void (*spent)(void *owner, enum limit_by, enum limit_of, const struct limits_row *,
		      const struct conf_rate *, int64_t n);
	/* n 0: none has, but what all have had is wanted. */

	void (*forget)(void *owner, enum limit_by, enum limit_of, const struct limits_row *);
	void *owner;
};

struct limits {
	struct limits_sharing sharing; /* spent NULL: there are no others */
	int64_t parts;		       /* away from the others a limit is divided by so many */
	struct limits_row *row[LIMIT_BY_COUNT]; /* the head of a hash table */
	struct list seen[LIMIT_BY_COUNT];	/* least lately first */
};

/* The ruling on one message or recipient. */
struct limits_ruling {
	bool suspended; /* its login is: nothing else was looked at */
	bool over;	/* of these: */
	enum limit_by by;
	enum limit_action action;
	struct conf_rate rate;
	int64_t wait_ms; /* until one conforms again */
};

void limits_init(struct limits *);
void limits_fini(struct limits *);

void limits_told(struct limits *, const char *login, const char *row, int64_t now_us);
/* A server was asked for the row of this login; NULL: it has none. A row is good. */

struct conf_limit limits_in_force(const struct conf *, enum limit_by, const char *name,
				  const struct limits_row *);
/* The section's limits; of a login, those of a row of the tables `limits`, or that were told. The row of its name may be
 * NULL. Rates without events are no limits. */

void limits_judge(struct limits *, const struct conf *, enum limit_of,
		  const char *const name[LIMIT_BY_COUNT], int64_t now_us, int64_t wall_ms,
		  struct limits_ruling *);
/* May this one pass? A name may be NULL. What passes, or is to be held, is counted where there is room;
 * what is refused is counted nowhere. */

void limits_logged_in(struct limits *, const char *login, int64_t now_us, int64_t wall_ms);
/* The login counts as seen from now on. */

void limits_accepted(struct limits *, const char *login, uint32_t nrcpt, int64_t wall_ms);
/* A message was queued. */

void limits_failed(struct limits *, const char *login, int64_t wall_ms);
/* A wrong password. Names that were never logged in with are not counted: anybody can invent them. */

void limits_suspend(struct limits *, const char *login, bool suspended); /* seen before or not */
bool limits_reset(struct limits *, const char *login);
/* Forget the counts of one. False: there is none of this name. */

void limits_total(struct limits *, enum limit_by, enum limit_of, const char *name,
		  const struct conf *, int64_t next_us, uint64_t through);
/* Counts of all nodes, with so many of those that this one has told of: steady clock. */

void limits_write(const struct limits *, struct buf *to);
void limits_read(struct limits *, const char *text);

struct limits_row *limits_find(const struct limits *, enum limit_by,
			       const char *name); /* or NULL */

#endif
