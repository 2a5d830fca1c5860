/* milter_chain_impl.h - a chain and its filters, for the files that are one with milter_chain.c.
 *
 *	milter_chain.c	 events in, the next filter, verdicts out
 *	milter_filter.c	 one filter: what it is to be told next, what becomes of mail when it is no good
 *	milter_verdict.c one answer of a filter's: what it means
 *
 * SEE        milter_chain.h.
 */
#ifndef SMTPD_MILTER_MILTER_CHAIN_IMPL_H
#define SMTPD_MILTER_MILTER_CHAIN_IMPL_H

#include "smtpd/milter/milter_chain.h"
#include "smtpd/milter/milter_content.h"
#include "smtpd/milter/milter_health.h"

#define MILTER_REJECTED "550 5.7.1 Command rejected\r\n"
#define MILTER_TEMPFAILED "451 4.7.1 Service unavailable - try again later\r\n"
#define MILTER_SHUT_DOWN "421 4.7.0 Service not available - closing connection\r\n"

/* How further events are answered. */
enum filter_state {
	FILTER_WORKS,
	FILTER_ACCEPTS_SESSION,
	FILTER_REFUSES_SESSION, /* by refusal */
	FILTER_ACCEPTS_MESSAGE,
	FILTER_FAILED, /* for this message: default_action */
};

struct filter {
	struct milter_chain *chain;
	const struct conf_milter *conf;
	struct milter_link *link; /* NULL: none */
	enum filter_state state;
	unsigned told; /* bits of enum milter_event: it knows these; MAIL: a message is under way */
	bool done;     /* with the event at work */
	int changes;
	char *refusal; /* REFUSES_SESSION */
	struct milter_content content;
};

struct milter_chain {
	struct milters *milters;
	struct conf *conf;
	const struct milter_edges *edges;
	void *owner;
	const struct draft *draft;
	const int *hidden;
	struct buf connect, helo, mail; /* what to tell whoever missed it */
	struct buf data;		/* of the event at work */
	enum milter_event event;	/* at work; END_OF_BODY stands for all content */
	int n, at;			/* at: whom is asked; n: nobody */
	bool settling;			/* changed() has not come to its end */
	bool holds;			/* the message */
	bool insists;			/* no default_action but tempfail */
	const char *discards;		/* which filter wants the message dropped; or NULL */
	struct milter_verdict verdict;
	struct buf reply;
	struct filter filter[CONF_MILTERS_MAX];
};

#define MILTER_BIT(event) (1U << MILTER_##event)

enum step { STEP_WAITS, STEP_NEXT, STEP_STOPS };

bool milter_is_of_session(enum milter_event); /* not of a message */
void milter_filter_move(struct filter *, enum filter_state);

enum step milter_filter_advance(struct filter *, milter_link_handler *);
/* Tell it what is due, until it is to answer, or to read; or knows all. */

void milter_filter_told(struct filter *, enum milter_event);
void milter_filter_forget(struct filter *); /* what it knows of the content, and wanted changed */

enum step milter_filter_refuse(struct filter *, const char *reply); /* that is the verdict */
enum step milter_filter_broken(struct filter *, int error);	    /* likewise */
void milter_filter_write_off(struct filter *, const char *why);	    /* for this message; say so */
enum step milter_filter_failed(struct filter *, const char *why);
/* The filter is no good: drop it, and do what is said for that. */

bool milter_filter_obey(struct filter *, enum milter_event, const struct milter_answer *,
			enum step *);
/* Its answer to that. True: it is to be told more; else what the step says. */

#endif
