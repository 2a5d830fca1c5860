/* queue_args.h - the words behind `sluice queue`: what to do, and with which messages.
 *
 * The client reads them to refuse what is wrong before it asks; the relay reads the same words
 * again.
 *
 * OWNERSHIP  Results point into argv, which is put in another order.
 * THREAD     Main: getopt keeps its place in globals.
 * ERRORS     False, and what is wrong in error. An id that is none is not refused here: it is not
 *            found.
 */
#ifndef CMD_QUEUE_ARGS_H
#define CMD_QUEUE_ARGS_H

#include "spool/spool.h"

#include <stdbool.h>

enum queue_verb {
	QUEUE_LIST,
	QUEUE_SHOW,
	QUEUE_CHECK, /* not by the relay */
	QUEUE_FLUSH,
	QUEUE_DELETE,
	QUEUE_HOLD,
	QUEUE_RELEASE,
	QUEUE_REQUEUE,
	QUEUE_BOUNCE,
	QUEUE_VERBS
};

struct queue_verb_row {
	const char *name;
	enum spool_order order; /* what the spool is asked to do */
	const char *done;	/* "3 messages ..." */
};
extern const struct queue_verb_row queue_verbs[QUEUE_VERBS];

struct queue_filter {
	int queue;			  /* enum spool_queue, or -1 */
	const char *from;		  /* "" is the null sender; or NULL */
	const char *to, *domain, *reason; /* or NULL */
	int64_t older_ms;		  /* -1: any age */
	bool any;			  /* it holds a condition */
};

struct queue_args {
	enum queue_verb verb;
	struct queue_filter filter;
	bool all, json, help;
	bool repair;		     /* check */
	bool envelope, header, body; /* what show sends; none set by the words: all */
	const char *conf_file;	     /* of -c, or NULL */
	int nid;
	char **id;
};

bool queue_args_parse(struct queue_args *, int argc, char **argv, struct buf *error);
/* argv[0] is "queue"; the verb is the first word that is no option. */

bool queue_filter_match(const struct queue_filter *, const struct spool_row *, int64_t now_ms);
/* to, domain and reason look at recipients that are not done; upper and lower case are the same. */

#endif
