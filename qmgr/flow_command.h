/* flow_command.h - the operator's view of flows, and what the operator may change.
 *
 *	main -- FLOW_COMMAND --> qmgr -- the same, with rows --> the loop named in reply_to
 *	qmgr -- FLOW_SAVE --> main, which writes it to disk: every ten seconds, if there is something new
 *
 * OWNERSHIP  Given away by posting. A command holds copies only; flow_command_free().
 * THREAD     Whoever holds it.
 * ERRORS     found is 0 where nothing has the name.
 */
#ifndef QMGR_FLOW_COMMAND_H
#define QMGR_FLOW_COMMAND_H

#include "base/conf.h"
#include "base/loop.h"
#include "base/order.h"

#include <stdbool.h>
#include <stdint.h>

/* FLOW_SAVE: a text_note, as flow_tallies_write() has it. */
enum flow_note { FLOW_COMMAND = NOTES_FROM(NOTES_OF_FLOW), FLOW_SAVE };

/* Recipients, see flow_tally.h; in doubt counts as deferred. */
struct flow_span {
	int64_t sent, deferred, refused;
};

struct flow_row {
	char *name;
	bool suspended;
	int64_t until_ms; /* wall clock: that ends by itself; 0: not */
	int64_t weight;
	struct conf_rate rate;
	int64_t lifetime;  /* 0: none of its own */
	char *transport;   /* or NULL */
	int64_t due_ms;	   /* wall clock: beyond its rate until then; 0: not */
	int64_t messages;  /* being worked on */
	int64_t oldest_ms; /* wall clock: when the oldest of these came; 0: none */
	int64_t sending;   /* entries on connections, and connections being opened for some */
	struct flow_span today, yesterday, hour;
	int64_t last_ms; /* wall clock: of the latest of these; 0: none */
};

struct flow_command {
	struct note note;
	enum order op;
	char *name;	  /* or NULL: all */
	int64_t until_ms; /* SUSPEND: wall clock, it ends by itself; 0: not */
	struct loop *reply_to;
	void *owner;
	/* filled by qmgr: */
	int found;
	int64_t sending; /* of all flows */
	int nrow;
	struct flow_row *row; /* by name */
};

struct flow_command *flow_command_new(enum order, const char *name, struct loop *reply_to,
				      void *owner);
void flow_command_free(struct flow_command **);

struct qmgr;
void flow_execute(struct qmgr *, struct flow_command *);
/* Do it, and send it back. */

void flow_save(struct qmgr *); /* what is new since the last time */

#endif
