/* milter_chain.h - the front page of smtpd/milter/: the filters of one client, in order.
 *
 *	milter_chain_connect(), _helo(), _mail(), _rcpt(), _data(), _content(), _unknown()
 *	     each filter in turn: what it was not told yet, then this, as far as it wants it
 *	     --> true: chain->verdict is there;  false: done() will be called, once
 *
 *	milter_chain.c, milter_filter.c, milter_verdict.c	the chain; one filter in it; what it decides
 *	milter_content.c	a message as filters see it, and their changes to it
 *	milter_link.c		a connection to a filter, kept for the next client if possible
 *	milter_health.c		how each filter is; milter_probe.c: whether it answers
 *	milter_engine.c		the protocol, without I/O; milter_table.h: its commands and macros
 *
 * One event at a time. A filter that could not be asked at CONNECT or HELO is tried again at MAIL, and
 * then told what it has missed. If it fails later, its default_action applies to this message, and it
 * is tried again with the next. Its changes count only when it has given its last answer.
 *
 * OWNERSHIP  The chain is a session's, or of a message that did not come by SMTP. It may be freed at any
 *            time, also from done(): what filters still owe is not waited for.
 * THREAD     The loop's.
 * STATES     Of each filter: enum filter_state. Only milter_filter_move() changes it.
 * ERRORS     A filter's are its default_action's, as a verdict. The machine's: verdict.error.
 * SEE        POSTFIX MILTER_README; Sendmail's libmilter, "Control flow".
 */
#ifndef SMTPD_MILTER_MILTER_CHAIN_H
#define SMTPD_MILTER_MILTER_CHAIN_H

#include "smtpd/milter/milter_link.h"
#include "stages/draft.h"

struct milter_chain;

enum milter_outcome {
	MILTER_PASS,
	MILTER_REFUSE,	/* by reply */
	MILTER_DISCARD, /* of a message: the client is not to know */
	MILTER_FAIL,	/* of the machine: error is an errno */
};

struct milter_verdict {
	enum milter_outcome outcome;
	const char *
		reply; /* REFUSE: whole lines, until the next event; closes if it begins with 421 */
	const char *filter; /* whose it is; of PASS: NULL */
	int error;
};

/* Whom a chain asks; all in its thread. */
struct milter_edges {
	const char *(*macro)(void *owner, const char *name); /* NULL: not defined */
	const char *(*change)(void *owner, const struct milter_answer *);
	/* Keep what the filter wants changed. A sentence: that can not be, and is a fault of the filter's. */
	int (*changed)(void *owner, const char *filter);
	/* The filter has said its last word: make the changes. An errno, or 0. Those that can't be made are
	 * the owner's to forget. */
	void (*unchanged)(void *owner); /* forget them */
	void (*tell)(void *owner, const char *filter, const char *action, const char *reason);
	/* For the log; reason may be NULL. */
	void (*done)(void *owner);
};

struct milter_chain *milter_chain_new(struct milters *, struct conf *, const struct milter_edges *,
				      void *owner);
/* Takes a reference on the configuration. Then milter_chain_add(). */

void milter_chain_add(struct milter_chain *,
		      const struct conf_milter *); /* of that configuration */
void milter_chain_insist(struct milter_chain *);
/* A filter that is no good has mail refused for now, whatever its default_action is. */

void milter_chain_free(struct milter_chain **); /* NULL is allowed */

const struct milter_verdict *milter_chain_verdict(const struct milter_chain *);
bool milter_chain_holds(const struct milter_chain *);
/* A default_action of quarantine: the message is to be held. */

bool milter_chain_connect(struct milter_chain *, const char *name, const union address *client);
/* The client's address, and its port; of what is no address, none. Once, before all others. */

bool milter_chain_helo(struct milter_chain *, const char *name);
bool milter_chain_mail(struct milter_chain *, const char *path, const char *parameters);
bool milter_chain_rcpt(struct milter_chain *, const char *path, const char *parameters);
/* path in angle brackets; parameters between blanks. */

bool milter_chain_data(struct milter_chain *);
bool milter_chain_unknown(struct milter_chain *, const char *line);

bool milter_chain_content(struct milter_chain *, const struct draft *, const int *hidden);
/* Opened. *hidden is the field that filters are not shown, our own Received, wherever it is when each
 * of them begins. The draft is not to change meanwhile, but by changed(). */

bool milter_chain_go_on(struct milter_chain *);
/* In changed() the owner has said EINPROGRESS: the changes are made now. As milter_chain_content(). */

void milter_chain_end(struct milter_chain *);
/* Of a transaction, however it ended. */

#endif
