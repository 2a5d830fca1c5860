/* queue_args.h - the arguments of `sluice queue`: what to do, and with which messages.
 *
 * The client reads them to refuse what is wrong before it asks; the relay reads the same words
 * again. A message that is named twice is named once.
 *
 * OWNERSHIP  Results point into argv, which is put in another order; the filter has arrays.
 * THREAD     Main: getopt keeps its place in globals.
 * ERRORS     False, and what is wrong in error. An id that is none is not refused here: it is not
 *            found.
 */
#ifndef CMD_TEXT_QUEUE_ARGS_H
#define CMD_TEXT_QUEUE_ARGS_H

#include "cmd/text/queue_filter.h"

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
	const char *name, *usage;
	enum spool_order order; /* what the spool is asked to do */
	const char *done;	/* "3 messages ..." */
};
extern const struct queue_verb_row queue_verbs[QUEUE_VERBS];

struct queue_args {
	enum queue_verb verb; /* QUEUE_VERBS: none was given */
	struct queue_filter filter;
	bool all, json, help;
	bool repair;		     /* check */
	bool fresh, refilter;	     /* release */
	bool envelope, header, body; /* what show sends; none set by the words: all */
	const char *conf_file;	     /* of -c, or NULL */
	int nid;
	char **id; /* "-": those on standard input, which the client puts in its place */
};

bool queue_args_parse(struct queue_args *, int argc, char **argv, struct buf *error);
/* argv[0] is "queue"; the verb is the first word that is no option. It is said as far as it is known
 * when something else is wrong, too. queue_args_fini() is due in any case. */

void queue_args_fini(struct queue_args *);

#endif
