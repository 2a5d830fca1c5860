/* question.h - a question and all who wait for it: equal questions are asked once.
 *
 *	question_ask --> in the cache? --------------------------------+
 *	                 asked already? the asker joins the others     |
 *	                 else wait for a free place --> channel or     v
 *	                                                validator
 *	                       ^--- ask on: CNAME, no EDNS <-- answer --> questions_work --> askers
 *
 * While validators have many questions, one of them for more than a second, each further one goes to the channel first, and
 * to a validator when a name server has answered that, whatever it said: libunbound has a socket for each question, and takes
 * a server that is silent about many names for one that is down. While all are younger, others wait when sockets get scarce.
 *
 * Replies are only recorded when they come; questions_work() then tells the askers, so that no
 * asker is called from within its own question_ask().
 *
 * A question that has no answer for a second lags: it goes on, and its place is free for another. So names whose
 * servers are silent hold up no others; what is under way without having a place is bounded by itself.
 *
 * Those that wait for a place stand in lines, by whose they are, and a place goes to the next line in turn: who looks up few
 * names does not wait for who looks up thousands.
 *
 * STATES     waiting (no free place), asked (a packet is under way), lagging (likewise, without a place),
 *            answered (until the next questions_work()); each is a list.
 * OWNERSHIP  An asker lies in its owner, who may withdraw it. The answer is lent for the call.
 * THREAD     dns.
 * ERRORS     ANSWER_FAILED. Who waits for a place longer than all attempts would have taken gets
 *            that, so that a dead resolver costs each asker a bounded time.
 */
#ifndef DNS_QUESTION_H
#define DNS_QUESTION_H

#include "base/conf.h"
#include "base/list.h"
#include "base/loop.h"
#include "dns/answer.h"

enum {
	QUESTION_UNDER_WAY_MAX =
		1000, /* packets at once: more would overrun the resolver's socket */
	QUESTION_UNSEEN_MAX =
		128, /* that validators have, one of them for long: others are to be answered before */
	QUESTION_VALIDATING_MAX =
		256, /* that they have, all of them young: half of their sockets */
	QUESTION_BRISK_MS = 1000,
	QUESTION_LAGGING_MAX = 40000, /* of the 65,536 ids, which must differ */
	QUESTION_CACHE_MAX = 50000,
	QUESTION_LINES = 64, /* more share some */
};

struct asker {
	struct list link;
	void (*answered)(struct asker *, struct answer *);
	unsigned line; /* base/resolve.h */
	bool known;    /* once answered: by the cache */
};

struct questions;

struct questions *questions_new(struct loop *, struct conf *);
/* Takes a reference of its own. */

void questions_free(struct questions **);
/* No asker is called any more. */

void questions_reload(struct questions *, struct conf *);
/* A new channel, an empty cache; what was under way is asked again. */

void question_ask(struct questions *, const char *name, enum answer_type, struct asker *);
/* name as dnsname.h has it. */

struct answer *questions_known(struct questions *, const char *name, enum answer_type);
/* The answer that the cache has, a reference, or NULL: nobody is asked. */

void questions_keep_failure(struct questions *, const char *name, enum answer_type,
			    struct answer *);
/* The answer came to nothing, and was not needed: nobody waits for another for a while, if it came late. Harmless otherwise. */

void question_withdraw(struct asker *);
/* Harmless when answered already. */

void questions_work(struct questions *);
/* Tell the askers what has come, and send what waits. */

#endif
