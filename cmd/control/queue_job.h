/* queue_job.h - one `sluice queue` command, as the relay carries it out.
 *
 *	request -- queue_job_start --> [ job ] -- SPOOL_COMMAND --> spool
 *	   ^                             | ^                          |
 *	   +------ text, a page at a time+ +----- queue_job_answer ---+
 *
 * With --site qmgr is asked first who goes there (queue_sites.h).
 *
 * A list is asked for in pages, the next one only when the client has read what it was sent, so
 * that a queue of a million messages takes no more memory than one of a thousand.
 *
 * With --refilter each message is shown, passes the filters in the maildrop's thread (refilter.h), and then is
 * released by its id; messages on hold are listed in pages too, also with --all. When the client goes, those that
 * are with filters stay on hold, but for what they have changed and is being stored already.
 *
 * STATES     asking (in_flight > 0), or waiting for the client; finished when both are over.
 * OWNERSHIP  The job owns itself, until it has answered its request or lost it, and nothing of it
 *            is in flight.
 * THREAD     Main.
 * ERRORS     Said to the client.
 */
#ifndef CMD_CONTROL_QUEUE_JOB_H
#define CMD_CONTROL_QUEUE_JOB_H

#include "cmd/control/control.h"
#include "cmd/maildrop/maildrop.h"
#include "cmd/text/queue_args.h"
#include "cmd/text/queue_print.h"
#include "cmd/text/queue_sites.h"

#include "base/magic.h"
#include "base/timer.h"

enum { QUEUE_PAGE = 500 };

enum { QUEUE_JOB_MAGIC = 0x90e0e10b };

struct queue_job {
	unsigned magic;
	struct request *request; /* NULL: the client has gone */
	struct loop *loop, *spool;
	struct queue_args args;
	struct conf *conf;
	struct queue_sites *sites; /* what --site is about, or NULL */
	int in_flight;		   /* commands that the spool or qmgr has */
	int next_id;		   /* of args.id, to ask about */
	uint64_t after;		   /* the last message of the page before */
	bool complete;		   /* nothing is left to ask */
	int64_t messages, cancelled;
	int64_t unmoved[SPOOL_UNMOVED]; /* why others stayed as they were */
	bool unsafe;			/* the spool could not write what was ordered */
	bool uncopied;			/* the copy of the queue has not heard of it */
	struct queue_unread unread;
	uint64_t bytes;
	int status;
	struct timer tell;	     /* how far it has come */
	struct spool_command *shown; /* SHOW: holds the content that is being sent */
	uint64_t sent;		     /* bytes of it */
	bool in_body, last_cr;
	int newlines;
	struct maildrop *maildrop; /* has filters asked; or NULL */
	struct {
		uint64_t *id; /* messages that are to pass filters: from next to n */
		int next, n, cap;
		int64_t until_ms; /* not those that come later */
		int64_t deleted, held;
	} refilter;
};

struct queue_job_asks {
	struct loop *loop, *spool;
	struct loop *qmgr;	   /* NULL: there is no scheduler */
	struct maildrop *maildrop; /* NULL: there are no filters */
	struct conf *conf;	   /* it takes a reference */
};

void queue_job_start(struct request *, const struct queue_job_asks *);
/* The words of the request are "queue", the verb, and the rest. */

void queue_job_answer(struct spool_command *);
void queue_job_sites(struct dest_command *); /* qmgr's answer */

void queue_job_refiltered(struct refilter *); /* the maildrop's answer */

const char *queue_refilter_refused(const struct queue_job *); /* NULL: it can be done */
void queue_refilter_add(struct queue_job *, uint64_t id);
bool queue_refilter_next(struct queue_job *, uint64_t *id);
/* True: show it now. */

enum spool_unmoved queue_refilter_shown(struct queue_job *, struct spool_command *);
/* SPOOL_UNMOVED: it is on its way; else why not. */

enum spool_order queue_refilter_answered(struct queue_job *, const struct refilter *);
/* Say what came of it. SPOOL_SHOW: that is all; else what is to be done with the message. */

void queue_refilter_total(const struct queue_job *, struct buf *to);

void queue_show_begin(struct queue_job *, struct spool_command *);
/* Send the message that this command holds, which is the job's from now on. */

bool queue_show_more(struct queue_job *);
/* Send on; true: all is sent. */

#endif
