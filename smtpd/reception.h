/* reception.h - one message on its way in: its envelope, its content, then the spool.
 *
 * OWNERSHIP  The session's; envelope and content are given to the spool.
 * THREAD     The session's worker.
 * STATES     The session's: MAIL RCPT (DATA | CHUNK BDAT), and WAIT.
 * ERRORS     reception_end() returns the reply.
 * SEE        RFC 5321 4.4 (Received), 6.3 (loops).
 */
#ifndef SMTPD_RECEPTION_H
#define SMTPD_RECEPTION_H

#include "base/envelope.h"
#include "base/tables.h"
#include "smtpd/alias.h"
#include "smtpd/alias_learn.h"
#include "smtpd/intake.h"
#include "smtpd/rcpt_pending.h"
#include "smtpd/session.h"
#include "stages/stages.h"

struct reception {
	struct spool *spool;
	struct envelope *envelope; /* NULL while the spool has it, or the passage */
	struct passage *passage;   /* its way through the stages; NULL: none */
	const char *flow;	   /* of the envelope, when that is stored, */
	const char *client;	   /* likewise */
	char *flow_named;	   /* by a row of access; NULL: by none */
	char *flow_row;		   /* what tables of flows say, some of them a server's; or NULL */
	bool flow_asked;	   /* those have been: flow_row is all that they say */
	char *limits_row;	   /* likewise, of limits for its login */
	bool limits_asked;
	void (*limits_done)(struct session *, bool learnt);
	struct access_value access; /* what becomes of each recipient: ACCEPT, REFUSE, DISCARD */
	enum table_role access_by;  /* whose tables say so */
	int access_step;	    /* how many of them were asked */
	void (*access_done)(struct session *);
	char *mail_from;    /* the sender as the client gave it */
	bool prioritised;   /* MT-PRIORITY was said */
	bool own;	    /* sender_logins has it so that this is the login's */
	char *sender;	    /* for the log, when the envelope is gone */
	uint64_t announced; /* SIZE, or 0 */
	uint64_t id, size;
	int64_t began_ms;  /* steady clock: of the content; 0: it has not begun */
	int64_t slowed_ms; /* so far, by in_flow_delay */
	uint32_t nrcpt;
	int overshoot;	  /* recipients beyond the limit */
	uint32_t besides; /* recipients taken that are there already, or thrown away */
	bool postmaster;
	bool expected;		       /* spool_expect() has been told of it */
	struct rcpt_pending *pending;  /* the RCPT that somebody is asked about; or NULL */
	struct alias_learning aliases; /* of the recipient at work, then of copies */
	bool aliases_failed;
	size_t recipient_bytes; /* what recipients take in memory */
	size_t charged;		/* to the budget */
	struct intake intake;
};

struct reception *reception_new(struct spool *, const char *sender);
void reception_free(struct reception **);

void reception_reset(struct session *);
/* Forget the transaction, if there is one, and be ready for another. */

void reception_sender(struct reception *, const char *sender);
/* The sender was rewritten. */

void reception_name(struct reception *); /* give it its id, unless it has one */

void reception_begin(struct session *, bool dots);
/* Content comes next: by DATA (dots) or BDAT. */

char *reception_flow(const struct session *, const char *named);
/* Whose mail it is, the caller's to free. named: by a field of its header, or NULL. */

bool reception_full(const struct session *);
/* All sessions together hold as much as they may: nothing more is begun. */

enum response reception_room(const struct session *);
/* RESPONSE_OK, or why the queue takes nothing now. */

void reception_added(struct session *, const struct alias_added *);
/* The envelope has those recipients more. */

void reception_feed(struct session *, const char *bytes, size_t *len);
/* *len: how many of the bytes belong to it. */

enum response reception_verdict(const struct session *);
/* Of what has come so far: RESPONSE_OK, or why the message will be refused. */

enum response reception_end(struct session *);
/* All has come: RESPONSE_OK, or why it is refused. */

bool reception_stages(struct session *);
/* The message is to pass stages before it is stored: there is a passage, to be run. After RESPONSE_OK. */

struct envelope *reception_envelope(const struct session *); /* wherever it is */

void reception_linger(struct reception *, bool lingers);
/* While it takes its time no commit is to wait for it. */

void reception_store(struct session *, uint64_t cookie);
/* Hand it to the spool, after RESPONSE_OK and its passage. The cookie comes with the answer. */

#endif
