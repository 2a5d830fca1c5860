/* alias_learn.h - servers are asked for aliases until an address is expanded as a whole.
 *
 *	alias_learn() --> known()? --> ALIAS_KNOWN
 *	           no |     ^
 *	              v     +-------------------------------+
 *	    what is wanted (alias_heard.h), one question    |
 *	    after the other: tables in their order ---------+
 *
 * What is known at once, in files or from a moment ago, is not waited for. One question at a time: each
 * other session finds a connection free. An address asks for at most ALIAS_QUESTIONS_MAX (alias.h), and is
 * looked at again each ALIAS_BYTES_MAX of rows, which may be its end; a client waits at most for ALIAS_LEARN_MS
 * and the answer to the question that is under way then. What was heard counts as memory of sessions; where
 * that is spent, nothing more is asked.
 *
 * A server's row is believed only where each of its members is an address with a domain.
 *
 * OWNERSHIP  Embedded, all zero at first; alias_learn_end(). It has a reference to the settings while it waits.
 * THREAD     That of its socketmaps.
 * ERRORS     ALIAS_FAILED: some server could not say, and nothing may be concluded; event lookup.
 * SEE        socketmap.h.
 */
#ifndef SMTPD_ALIAS_LEARN_H
#define SMTPD_ALIAS_LEARN_H

#include "base/conf.h"
#include "smtpd/alias_heard.h"
#include "stages/stages.h"

#include <stdint.h>

struct socketmaps;

enum { ALIAS_LEARN_MS = 60000 };

enum alias_learnt { ALIAS_KNOWN, ALIAS_FAILED, ALIAS_WAITS };

/* Who wants to know. */
struct alias_learner {
	struct socketmaps *maps;
	struct conf *conf;
	uint64_t session, id; /* for the log; 0: none */
	bool (*known)(void *owner);
	/* Is what was heard enough? Asked once all that is wanted was heard, or ALIAS_BYTES_MAX of it. NULL: it is, and whoever
	 * finds that it is not asks again. */
	void (*learnt)(void *owner, bool failed); /* after ALIAS_WAITS, once */
	void *owner;
	bool patient; /* nobody waits for a reply: it takes as long as it takes */
};

struct alias_learning {
	struct alias_heard heard;
	struct alias_learner by; /* by.conf NULL: nobody is asked */
	uint64_t asked;		 /* socketmap_ask_for(); 0: nobody is */
	int table;		 /* that is next */
	int64_t begun_ms;	 /* steady clock */
	size_t charged;		 /* to the budget of sessions (stages/budget.h) */
	size_t looked;		 /* heard.said when the address was last expanded */
};

enum alias_learnt alias_learn(struct alias_learning *, const struct alias_learner *);

void alias_learn_end(
	struct alias_learning *); /* learnt() will not be called; what was heard is forgotten */

void alias_learn_refuse(struct passage *); /* for now, since a server could not say */

#endif
